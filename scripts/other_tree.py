"""Another commit of this project, installed next to this one, to compare the two on one machine."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# One thread: a sum over several threads may round differently from run to run.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@contextmanager
def other_tree(commit: str) -> Iterator[tuple[Path, Path, Path]]:
    """Check out and install a commit; yield a temporary folder, the tree, and its Python."""
    with tempfile.TemporaryDirectory(prefix="other_tree_") as name:
        folder = Path(name)
        tree = folder / "tree"
        git("worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield folder, tree, environment(folder / "environment", tree)
        finally:
            git("worktree", "remove", "--force", str(tree))


def git(*arguments: str) -> None:
    """Run git in this tree."""
    subprocess.run(["git", *arguments], cwd=ROOT, check=True)


def environment(folder: Path, tree: Path) -> Path:
    """Install a tree in an environment that borrows this one's dependencies; return its Python."""
    report("installing COMMIT")
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)], cwd=tree)
    python = folder / "bin" / "python"
    query = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    packages = Path(run([str(python), "-c", query], cwd=folder).strip())
    borrowed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (packages / "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    # Without isolation the build needs no download if its tools are installed.
    build_tools = all(find_spec(tool) for tool in ("scikit_build_core", "nanobind"))
    options = ["--no-build-isolation"] if build_tools else []
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    run([str(python), *install, "--ignore-installed", *options, str(tree)], cwd=folder)
    location = run(
        [str(python), "-c", "import feta, feta._native; print(feta.__file__)"], cwd=folder
    )
    if not Path(location.strip()).is_relative_to(folder):
        raise SystemExit(f"wrong installation: got {location.strip()}; expected one in {folder}")
    return python


def run(command: list[str], *, cwd: Path, codes: tuple[int, ...] = (0,)) -> str:
    """Run a program with one thread; return its output, or raise with what it wrote."""
    variables = {**os.environ, **ONE_THREAD, "COLUMNS": "160"}
    done = subprocess.run(
        command, cwd=cwd, env=variables, capture_output=True, text=True, check=False
    )
    if done.returncode not in codes:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    return done.stdout


def report(text: str) -> None:
    """Print progress."""
    print(text, file=sys.stderr, flush=True)
