/*
 * What sandboxes use, as the kernel counts it: control groups of either version, and the layers of
 * their files. It is read from outside, so nothing inside can influence it, and it works for a
 * paused sandbox. Values that the host does not count have no bit in the answer: under rlimits that
 * is everything but the files.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "box/warden/internal.h"

/* ---- files of control groups ----------------------------------------------------------------- */

static bool usage_parse(const char *text, uint64_t *ret)
{
	char *end;

	*ret = strtoull(text, &end, 10);
	return end != text;
}

static bool read_number(int dir, const char *file, uint64_t *ret)
{
	char text[KERNEL_TEXT_MAX];

	return text_read(dir, file, text) && usage_parse(text, ret);
}

/* Processor time in microseconds: in v2 each group counts it, whatever its controllers. */
static bool read_cpu(int dir, bool v2, uint64_t *ret)
{
	static const char key[] = "usage_usec ";
	char text[KERNEL_TEXT_MAX], *at;

	if (!v2) {
		if (!read_number(dir, "cpuacct.usage", ret))
			return false;
		*ret /= 1000;
		return true;
	}
	at = text_read(dir, "cpu.stat", text) ? strstr(text, key) : NULL;
	return at && usage_parse(at + sizeof(key) - 1, ret);
}

/* ---- one sandbox, or all --------------------------------------------------------------------- */

static void use_memory(uint32_t slot, struct wm_use *u)
{
	autoclose int dir = cgroup_open(&warden.cgroups, CG_MEMORY, slot);
	bool v2 = warden.cgroups.v2[CG_MEMORY];

	if (dir < 0)
		return;
	if (read_number(dir, v2 ? "memory.current" : "memory.usage_in_bytes", &u->memory))
		u->has |= WM_USE_MEMORY;
	if (read_number(dir, v2 ? "memory.peak" : "memory.max_usage_in_bytes", &u->memory_peak))
		u->has |= WM_USE_PEAK;
}

static void use_pids(uint32_t slot, struct wm_use *u)
{
	autoclose int dir = cgroup_open(&warden.cgroups, CG_PIDS, slot);

	if (dir >= 0 && read_number(dir, "pids.current", &u->pids))
		u->has |= WM_USE_PIDS;
}

/* A v1 hierarchy need not have cpuacct beside cpu; a hybrid's v2 tree, which we use for freezing,
 * counts, too. */
static const int counts_cpu[] = { CG_CPU, CG_MEMORY, CG_FREEZER };

static void use_cpu(uint32_t slot, struct wm_use *u)
{
	for (size_t i = 0; i < ARRAY_LEN(counts_cpu) && !(u->has & WM_USE_CPU); i++) {
		autoclose int dir = cgroup_open(&warden.cgroups, counts_cpu[i], slot);

		if (dir >= 0 && read_cpu(dir, warden.cgroups.v2[counts_cpu[i]], &u->cpu_us))
			u->has |= WM_USE_CPU;
	}
}

uint64_t cpu_counted(uint32_t slot)
{
	struct wm_use u = { 0 };

	use_cpu(slot, &u);
	return u.cpu_us;
}

/* How long any task of the group waited. 0 where this is not counted: v2 has it, and it can be
 * switched off. */
static uint64_t read_waited(int dir)
{
	static const char line[] = "some ", key[] = " total=";
	char text[KERNEL_TEXT_MAX], *at;
	uint64_t us = 0;

	if (!text_read(dir, "cpu.pressure", text) || strncmp(text, line, sizeof(line) - 1) != 0)
		return 0;
	at = strstr(text, key);
	return at && usage_parse(at + sizeof(key) - 1, &us) ? us : 0;
}

static int open_v2(uint32_t slot)
{
	for (size_t i = 0; i < ARRAY_LEN(counts_cpu); i++) {
		if (warden.cgroups.v2[counts_cpu[i]])
			return cgroup_open(&warden.cgroups, counts_cpu[i], slot);
	}
	return -1;
}

bool cpu_time(uint32_t slot, struct cpu_time *ret)
{
	struct wm_use u = { 0 };
	autoclose int dir = -1;

	use_cpu(slot, &u);
	*ret = (struct cpu_time){ .ran_us = u.cpu_us };
	dir = open_v2(slot);
	if (dir >= 0)
		ret->waited_us = read_waited(dir);
	return u.has & WM_USE_CPU;
}

uint64_t memory_left(const struct sandbox *b)
{
	struct wm_use u = { 0 };

	use_memory(slot_of(b), &u);
	if (!(u.has & WM_USE_MEMORY))
		return UINT64_MAX;
	return u.memory < b->limits.memory ? b->limits.memory - u.memory : 0;
}

/* Bytes of its writable and frozen layers, without those of the template. */
static uint64_t disk_of(const struct sandbox *b)
{
	const struct chain *c = &b->chain;
	uint64_t used = c->upper ? store_layer_used(c->upper) : 0;

	if (warden.store.plain)
		return used > warden.store.skel_bytes ? used - warden.store.skel_bytes : 0;
	for (uint32_t i = 0; i < c->n_frozen; i++)
		used += c->frozen[i]->bytes;
	return used;
}

static void use_groups(uint32_t slot, struct wm_use *u)
{
	use_memory(slot, u);
	use_pids(slot, u);
	use_cpu(slot, u);
}

static void sandbox_use(const struct sandbox *b, struct wm_use *u)
{
	u->has = WM_USE_LIVES | WM_USE_DISK;
	u->disk = disk_of(b);
	use_groups(slot_of(b), u);
	if (u->has & WM_USE_CPU)
		u->cpu_us -= b->cpu_before_us;
}

int say_usage(const struct hub_message *in, struct err *e)
{
	const struct wm_usage *m = in->p;
	struct wm_used out = { .h = { WM_USED, m->h.seq } };

	(void)e;
	for (uint32_t i = 0; i < m->n && i < WIRE_USAGE_MAX; i++) {
		const struct sandbox *b = sandbox_find(m->keys[i]);

		if (b)
			sandbox_use(b, &out.of[i]);
		out.n++;
	}
	if (m->n == 0) {
		use_groups(CGROUP_ALL, &out.of[0]);
		out.n = 1;
	}
	send_hub(&out, sizeof(out), NULL, 0);
	return 0;
}
