#pragma once
/*
 * Lets the Nth allocation from now fail, and all after it. Works in programs linked with
 * alloc_fail_args (meson.build), for code that is linked statically.
 *
 *	for (unsigned n = 0; alloc_fail_next(&n);)
 *		run();		returns true as long as the last run met the failure
 */
#include <stdbool.h>

/* Arms the failure of allocation *n and counts it up; false, and disarmed, once a whole run has
 * needed fewer allocations. *n starts at 0. */
bool alloc_fail_next(unsigned *n);

/* True where the armed failure has happened. */
bool alloc_failed(void);

/* Before libuv is used: its own allocations succeed where it is linked statically, too, since it
 * ends or crashes without memory. Returns 0. */
int alloc_fail_spare_uv(void);
