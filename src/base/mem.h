#pragma once
/*
 * Ownership in the declaration:
 *
 *	autofree char *path = NULL;		freed when it leaves scope
 *	autoclose int fd = -1;			closed when it leaves scope, unless negative
 *	AUTO(thing_free) struct thing *t = NULL;	thing_free(t) when it leaves scope
 *
 * Every such variable is initialised where it is declared. take_ptr() and take_fd() hand the
 * value on and leave NULL or -1 behind. Functions that use these have no goto.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline void mem_free_at(void *p)
{
	free(*(void **)p);
}

static inline void mem_close_at(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

#define autofree __attribute__((cleanup(mem_free_at)))
#define autoclose __attribute__((cleanup(mem_close_at)))

/* AUTO(f): f takes the pointer and is NULL-safe. One AUTO_DEFINE(f, struct thing) stands beside
 * the declaration of f. */
#define AUTO_DEFINE(free_fn, type)                                                                 \
	static inline void free_fn##_at(type **p)                                                  \
	{                                                                                          \
		free_fn(*p);                                                                       \
	}
#define AUTO(free_fn) __attribute__((cleanup(free_fn##_at)))

#define take_ptr(p)                                                                                \
	({                                                                                         \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})

/* Same as calloc(1, n), but fast for what every request needs: calloc() of glibc before 2.41 does
 * not use its cache of recently freed pieces. */
static inline void *mem_zalloc(size_t n)
{
	void *p = malloc(n);

	__asm__("" : "+r"(p)); /* else the compiler makes a calloc of the two */
	return p ? memset(p, 0, n) : NULL;
}

/* A copy of n bytes, which may include NULs, followed by a NUL. */
static inline char *mem_dup(const void *p, size_t n)
{
	char *copy = (char *)malloc(n + 1); /* the cast is for C++ */

	if (!copy)
		return NULL;
	if (n > 0)
		memcpy(copy, p, n);
	copy[n] = '\0';
	return copy;
}

static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* Closes *fd if it is open and sets it to -1. */
static inline void close_fd(int *fd)
{
	mem_close_at(fd);
	*fd = -1;
}
