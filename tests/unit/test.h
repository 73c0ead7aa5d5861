#pragma once
/* cmocka with the headers that it wants, and what every unit test needs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

/* A row of a table failed: says which. */
#define ROW_CHECK(cond, row)                                                                       \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			print_error("row %s: %s\n", (row), #cond);                                 \
			fail();                                                                    \
		}                                                                                  \
	} while (0)
