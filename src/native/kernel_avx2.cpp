#define FETA_ISA isa_avx2
#define FETA_MAKE make_avx2
#include "kernel.inc"
