#define FETA_ISA portable
#define FETA_MAKE make_portable
#include "kernel.inc"
