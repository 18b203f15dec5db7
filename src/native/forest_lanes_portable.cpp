#define FETA_ISA portable
#define FETA_MAKE make_lanes_portable
#include "forest_lanes.inc"
