#define FETA_ISA isa_avx2
#define FETA_MAKE make_branch_avx2
#include "branch.inc"
