#include "box/wire/limits.h"

int limits_complete(struct limits *l, struct err *e)
{
	const struct limits d = LIMITS_DEFAULT;

	if (!l->memory)
		l->memory = d.memory > l->disk ? d.memory : l->disk;
	if (!l->disk)
		l->disk = d.disk < l->memory / 2 ? d.disk : l->memory / 2;
	if (!l->pids)
		l->pids = d.pids;
	if (l->memory < LIMIT_MEMORY_MIN || l->memory > LIMIT_MEMORY_MAX)
		return err_set(e, ERR_INVALID, "memory: from %llu MiB to %llu MiB",
			       LIMIT_MEMORY_MIN / MIB, LIMIT_MEMORY_MAX / MIB);
	if (l->disk < LIMIT_DISK_MIN || l->disk > l->memory)
		return err_set(e, ERR_INVALID,
			       "disk: from 1 MiB to the memory limit, since files live in memory");
	if (l->pids < LIMIT_PIDS_MIN || l->pids > LIMIT_PIDS_MAX)
		return err_set(e, ERR_INVALID, "pids: from %d to %d", LIMIT_PIDS_MIN,
			       LIMIT_PIDS_MAX);
	if (l->cpu_milli && (l->cpu_milli < LIMIT_CPU_MIN || l->cpu_milli > LIMIT_CPU_MAX))
		return err_set(e, ERR_INVALID, "cpus: from %.2f to %d",
			       (double)LIMIT_CPU_MIN / 1000, LIMIT_CPU_MAX / 1000);
	if (l->files && (l->files < LIMIT_FILES_MIN || l->files > LIMIT_FILES_MAX))
		return err_set(e, ERR_INVALID, "open files: from %d to %d", LIMIT_FILES_MIN,
			       LIMIT_FILES_MAX);
	return 0;
}

const char *limit_driver_name(enum limit_driver d)
{
	static const char *const names[] = {
		[LIMIT_DRIVER_CGROUP2] = "cgroup2",
		[LIMIT_DRIVER_CGROUP1] = "cgroup1",
		[LIMIT_DRIVER_RLIMIT] = "rlimit",
	};

	return names[d];
}
