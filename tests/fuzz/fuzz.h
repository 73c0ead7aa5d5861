#pragma once
/*
 * A fuzz target defines LLVMFuzzerTestOneInput(). With clang and sanitizers it becomes fuzz-NAME
 * (libFuzzer, see scripts/fuzz); with every compiler it becomes corpus-NAME, which runs the files
 * of corpus/NAME as an ordinary test. A finding that was fixed is added there.
 *
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* What must hold for every input; unlike assert() it is never compiled out. */
#define MUST(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			abort();                                                                   \
		}                                                                                  \
	} while (0)
