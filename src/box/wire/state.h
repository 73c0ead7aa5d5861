#pragma once
/* The folder of the hub's own folders below which programs in sandboxes may be given files: what
 * agents keep between their sandboxes (box/warden/closed.h). */
#define BOX_STATE "state"
