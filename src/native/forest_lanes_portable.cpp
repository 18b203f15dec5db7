#define FETA_ISA isa_portable
#define FETA_MAKE make_lanes_portable
#define FETA_BYTES 16
#include "forest_lanes.inc"
