#define FETA_ISA isa_avx2
#define FETA_MAKE make_lanes_avx2
#define FETA_BYTES 32
#include "forest_lanes.inc"
