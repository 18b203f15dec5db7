// A second checker of receipts and signed certificates, written from docs/reference/certificates.md.
//
//   node seals.mjs PUBLIC_KEY RECEIPT|FOLDER…
//
// It prints one line per file: "accepted" if seal and signature are valid, else "refused". It proves no
// claims. Ed25519 is that of Node, so it shares no code with feta_check.

import { createHash, createPublicKey, verify } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const hash = (...parts) => parts.reduce((digest, part) => digest.update(part), createHash("sha256")).digest();
const hex = (content) => hash(content).toString("hex");
const LEAF = Buffer.from([0]);
const NODE = Buffer.from([1]);
const HEADER = ["data_sha256", "date", "feta", "format", "model_sha256", "provenance", "relation", "rule_sha256", "schema_sha256", "version", "votes_sha256"];
const END = ["claims", "complete", "counts", "header_sha256", "root"];
const RECEIPT = ["claim", "end", "format", "header", "index", "path", "schema", "signature", "version"];

function demand(condition, what) {
  if (!condition) throw new Error(what);
}

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value && typeof value === "object") {
    return `{${Object.keys(value).sort().map((key) => `${canonical(key)}:${canonical(value[key])}`).join(",")}}`;
  }
  const text = JSON.stringify(value);
  return text.replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function parse(bytes) {
  const text = bytes.toString("latin1");
  const value = JSON.parse(text);
  demand(canonical(value) === text && !Array.isArray(value) && typeof value === "object", "not canonical");
  return value;
}

const withoutEnd = (bytes) => (bytes.at(-1) === 10 ? bytes.subarray(0, -1) : bytes);
const hasKeys = (value, keys) => demand(canonical(Object.keys(value).sort()) === canonical(keys), "other fields");

// Recursion as in the definition of RFC 6962: the left subtree has the largest power of two below n.
function split(n) {
  let size = 1;
  while (size * 2 < n) size *= 2;
  return size;
}

function rootOf(lines) {
  if (!lines.length) return hash("");
  if (lines.length === 1) return hash(LEAF, lines[0]);
  const at = split(lines.length);
  return hash(NODE, rootOf(lines.slice(0, at)), rootOf(lines.slice(at)));
}

// The path lists siblings from the leaf upward, so the last one belongs to the root.
function rootAbove(leaf, index, count, path) {
  if (count === 1) return demand(!path.length, "a long path"), leaf;
  demand(path.length, "a short path");
  const sibling = Buffer.from(path.at(-1), "hex");
  demand(sibling.length === 32 && sibling.toString("hex") === path.at(-1), "no hash");
  const at = split(count);
  const rest = path.slice(0, -1);
  return index < at
    ? hash(NODE, rootAbove(leaf, index, at, rest), sibling)
    : hash(NODE, sibling, rootAbove(leaf, index - at, count - at, rest));
}

function statement(header, end) {
  const names = { "model.feta": "model_sha256", "schema.json": "schema_sha256", table: "data_sha256" };
  const subject = Object.entries(names)
    .filter(([, key]) => header[key])
    .map(([name, key]) => ({ name, digest: { sha256: header[key] } }));
  const _type = "https://in-toto.io/Statement/v1";
  return Buffer.from(canonical({ _type, predicateType: "urn:x-feta:certificate:1", subject, predicate: { end, header } }));
}

function decoded(text) {
  demand(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text), "no base64");
  return Buffer.from(text, "base64");
}

function checkSignature(envelope, payload, key) {
  const type = "application/vnd.in-toto+json";
  demand(envelope.payloadType === type && decoded(envelope.payload).equals(payload), "another payload");
  const message = Buffer.concat([Buffer.from(`DSSEv1 ${type.length} ${type} ${payload.length} `), payload]);
  demand(envelope.signatures.length <= 16, "many signatures");
  const valid = envelope.signatures.map(({ sig }) => verify(null, message, key, decoded(sig)));
  demand(valid.includes(true), "no valid signature");
}

function checkReceipt(path, key) {
  const receipt = parse(withoutEnd(readFileSync(path)));
  hasKeys(receipt, RECEIPT);
  const { claim, end, header, index } = receipt;
  demand(receipt.format === "feta-receipt" && receipt.version === 1, "another format");
  hasKeys(header, HEADER);
  hasKeys(end, END);
  demand(header.format === "feta-certificate" && header.version === 1, "another version");
  demand(hex(canonical(header)) === end.header_sha256, "another header");
  demand(hex(canonical(receipt.schema)) === header.schema_sha256, "another schema");
  demand(Number.isInteger(index) && Number.isInteger(end.claims) && 0 <= index && index < end.claims, "another index");
  demand(Number.isInteger(claim.row) && Array.isArray(receipt.path), "no row or path");
  const root = rootAbove(hash(LEAF, canonical(claim)), index, end.claims, receipt.path);
  demand(root.toString("hex") === end.root, "another root");
  checkSignature(receipt.signature, statement(header, end), key);
}

function checkFolder(folder, key) {
  const lines = readFileSync(join(folder, "certificate.jsonl"), "latin1").split("\n");
  demand(lines.pop() === "" && lines.length > 1, "truncated");
  const [header, end] = [parse(Buffer.from(lines[0])), parse(Buffer.from(lines.at(-1)))];
  demand(end.header_sha256 === hex(lines[0]) && end.claims === lines.length - 2, "the seal is broken");
  demand(end.root === rootOf(lines.slice(1, -1)).toString("hex"), "another root");
  const path = join(folder, "certificate.dsse.json");
  demand(existsSync(path), "not signed");
  checkSignature(parse(withoutEnd(readFileSync(path))), statement(header, end), key);
}

const [keyFile, ...files] = process.argv.slice(2);
const key = createPublicKey(readFileSync(keyFile));
for (const file of files) {
  try {
    (statSync(file).isDirectory() ? checkFolder : checkReceipt)(file, key);
    console.log("accepted");
  } catch (error) {
    console.log("refused");
  }
}
