#pragma once
/*
 * Large memory that is about to be filled. The first touch of a page is a fault, and the faults of
 * an answer of some MiB, 4 KiB at a time, may take longer than all else that is done with it: on
 * some virtual machines 5 ms for each MiB. So the kernel is asked for huge pages.
 */
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { LARGE_MIN = 2 << 20 }; /* no huge page fits into less */

/* Gives p, which is of malloc() or realloc() for n bytes, or NULL. A hint: errno stays. */
static inline void *large_hint(void *p, size_t n)
{
	const uintptr_t page = 4096; /* where pages are larger, the hint may fail */
	uintptr_t begin = (uintptr_t)p / page * page, end;
	int saved = errno;

	if (!p || n < LARGE_MIN)
		return p;
	/* All of its mapping: realloc() can't move a part of one, and would copy. */
	end = ((uintptr_t)p + malloc_usable_size(p) + page - 1) / page * page;
	(void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
	errno = saved;
	return p;
}
