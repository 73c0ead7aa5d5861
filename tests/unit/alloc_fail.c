#include "alloc_fail.h"

#include <errno.h>
#include <stddef.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static struct {
	bool armed, met;
	unsigned left;
} state;

bool alloc_fail_next(unsigned *n)
{
	if (*n > 0 && !state.met) {
		state.armed = false;
		return false;
	}
	state.armed = true;
	state.met = false;
	state.left = (*n)++;
	return true;
}

bool alloc_failed(void)
{
	return state.met;
}

static bool fails(void)
{
	if (!state.armed)
		return false;
	if (state.left > 0) {
		state.left--;
		return false;
	}
	state.met = true;
	errno = ENOMEM;
	return true;
}

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}
