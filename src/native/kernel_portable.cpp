#define FETA_ISA isa_portable
#define FETA_MAKE make_portable
#include "kernel.inc"
