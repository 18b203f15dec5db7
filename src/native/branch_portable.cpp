#define FETA_ISA isa_portable
#define FETA_MAKE make_branch_portable
#include "branch.inc"
