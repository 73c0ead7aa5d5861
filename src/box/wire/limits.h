#pragma once
/*
 * What a sandbox may use and do. 0 in a request means the default below. A limit that this host
 * can't enforce is refused with ERR_UNSUPPORTED, never ignored. Memory may be limited for each
 * process only (enum limit_driver); then every door says so.
 *
 * Files live in memory (tmpfs), so `disk` is a part of `memory`, not an addition. A sandbox that
 * fills its disk gets ENOSPC. If its processes and files together exceed `memory`, a process is
 * killed, and the exec reports it (LIMIT_HIT_MEMORY).
 */
#include <stdint.h>

#include "base/err.h"

struct limits {
	uint64_t memory; /* bytes, processes and files together */
	uint64_t disk; /* bytes, at most `memory` */
	uint32_t pids; /* processes and threads, the first process counted */
	uint32_t cpu_milli; /* thousandths of a CPU; 0 in a live sandbox: all CPUs */
	/* Open files of each program; 0 in a live sandbox: as many as the host gives, which no
	 * limit raises. The program hears of it (EMFILE), nobody else. */
	uint32_t files;
	uint32_t debug; /* 1: its programs may trace each other and read each other's memory */
	uint32_t root; /* 1: its user is uid 0 inside, with a range of ids */
};

#define MIB (1024ull * 1024)

enum {
	LIMIT_PIDS_MIN = 4,
	LIMIT_PIDS_MAX = 32768,
	LIMIT_CPU_MIN = 10,
	LIMIT_CPU_MAX = 1024 * 1000,
	LIMIT_FILES_MIN = 16,
	LIMIT_FILES_MAX = 65536,
};
#define LIMIT_MEMORY_MIN (16 * MIB)
#define LIMIT_MEMORY_MAX (1024 * 1024 * MIB)
#define LIMIT_DISK_MIN (1 * MIB)
#define LIMIT_MEMORY_INIT (8 * MIB) /* what files never take of a sandbox's memory */
#define LIMITS_DEFAULT                                                                             \
	((struct limits){ .memory = 1024 * MIB, .disk = 512 * MIB, .pids = 512, .cpu_milli = 0 })

/* Replaces each 0 by its default (a memory limit below the default disk gets half of itself as
 * disk) and checks the ranges; ERR_INVALID names the limit. */
int limits_complete(struct limits *l, struct err *e) MUST_USE;

/* How this host enforces memory and pids. */
enum limit_driver {
	LIMIT_DRIVER_CGROUP2, /* exact, for the sandbox as a whole */
	LIMIT_DRIVER_CGROUP1, /* exact, for the sandbox as a whole */
	LIMIT_DRIVER_RLIMIT, /* memory per process, pids exact; no CPU share */
};
const char *limit_driver_name(enum limit_driver d); /* "cgroup2", "cgroup1", "rlimit" */
