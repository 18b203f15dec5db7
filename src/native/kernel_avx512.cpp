#define FETA_ISA isa_avx512
#define FETA_MAKE make_avx512
#include "kernel.inc"
