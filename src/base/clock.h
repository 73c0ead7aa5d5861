#pragma once
#include <stdint.h>
#include <time.h>

/* Nanoseconds of the monotonic clock. */
static inline uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Milliseconds since 1970, for clients and for storage. It may jump. */
static inline int64_t clock_unix_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline uint64_t clock_ms(void)
{
	return clock_ns() / 1000000u;
}

/* The same at the kernel's last tick, some milliseconds ago; much cheaper. */
static inline uint64_t clock_coarse_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}
