#pragma once
/* cmocka with the headers that it wants, and what every unit test needs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <ftw.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

/* Skips a test that qemu-user lacks something for: scripts/dist-check says by HOLT_QEMU_USER that
 * it runs the tests so, and repeats what is printed here. */
#define NEEDS_A_KERNEL(what)                                                                       \
	do {                                                                                       \
		if (getenv("HOLT_QEMU_USER")) {                                                    \
			print_message("skipped under qemu-user, which lacks " what ": %s\n",       \
				      __func__);                                                   \
			skip();                                                                    \
		}                                                                                  \
	} while (0)

/* A row of a table failed: says which. */
#define ROW_CHECK(cond, row)                                                                       \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			print_error("row %s: %s\n", (row), #cond);                                 \
			fail();                                                                    \
		}                                                                                  \
	} while (0)

static inline int test_remove_folder_entry(const char *path, const struct stat *st, int type,
					   struct FTW *at)
{
	return remove(path);
}

/* Removes a folder with all that is in it. Returns 0, as a teardown does, or -1. */
static inline int test_remove_folder(const char *folder)
{
	return nftw(folder, test_remove_folder_entry, 16, FTW_DEPTH | FTW_PHYS);
}
