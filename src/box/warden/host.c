/* The warden's set-up: its identity, what this host supports, and what all sandboxes share. */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "box/warden/internal.h"

enum {
	SANDBOXES_MAX = 8192,
	FILES_LEAST = 64,
};

#define ID_LOCKS "/run/holt-ids"

/* Ids for sandboxes: the range that no known allocator of ids uses, and for a container that has
 * only the usual 65536 ids. */
static const struct {
	uint32_t first, end;
} id_ranges[] = { { IDS_FIRST, IDS_END }, { 20000, 65534 } };

/* How many ids from first on are mapped in our user namespace. */
static uint64_t ids_mapped(uint64_t first)
{
	FILE *f = fopen("/proc/self/uid_map", "re");
	unsigned long long inside, outside, count;
	uint64_t n = 0;

	while (f && !n && fscanf(f, "%llu %llu %llu", &inside, &outside, &count) == 3)
		n = first >= inside && first < inside + count ? inside + count - first : 0;
	if (f)
		fclose(f);
	return n;
}

/* Maps the user and group to 0. A map that exists already is left alone. */
static int map_self(uid_t uid, gid_t gid, struct err *e)
{
	char map[64];

	snprintf(map, sizeof(map), "0 %u 1\n", uid);
	if (ids_mapped(0) == 0 && text_write(AT_FDCWD, "/proc/self/uid_map", map) < 0)
		return err_sys(e, errno, "map the user");
	if (text_write(AT_FDCWD, "/proc/self/setgroups", "deny") < 0)
		return err_sys(e, errno, "map the user");
	snprintf(map, sizeof(map), "0 %u 1\n", gid);
	return text_write(AT_FDCWD, "/proc/self/gid_map", map) < 0
		     ? err_sys(e, errno, "map the group")
		     : 0;
}

/* An unprivileged user becomes root of a user namespace of its own, with one id, or with those for
 * sandboxes with root. */
static int become_rootless(struct host *h, bool root, struct err *e)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	int mapper;

	if (uid == 0)
		return err_set(e, ERR_UNSUPPORTED,
			       "root without CAP_SYS_ADMIN: sandboxes would be root on the host");
	mapper = root ? range_map_start() : -1;
	if (unshare(CLONE_NEWUSER) < 0)
		return err_sys(e, errno, "make a user namespace");
	h->has_range = range_map(mapper);
	if (!h->has_range && map_self(uid, gid, e) < 0)
		return -1;
	h->rootless = true;
	h->nested = true;
	h->one_uid = true;
	h->uid_base = 0; /* this user, outside */
	return 0;
}

/* The lock lasts until this process and the helpers that clean up after it have ended. */
bool ids_lock(int locks, uint64_t first, uint64_t n, bool lock)
{
	struct flock l = { .l_type = lock ? F_WRLCK : F_UNLCK,
			   .l_start = (off_t)first,
			   .l_len = (off_t)n };

	return locks < 0 || fcntl(locks, F_OFD_SETLK, &l) == 0 ||
	       (errno != EAGAIN && errno != EACCES); /* no locks on this file system */
}

/* Takes the first n ids in a row that no other warden of the machine has, from a random place on,
 * so that the kernel's counters for each user are not shared with sandboxes of another hub. */
static bool take_ids(struct host *h, uint32_t n)
{
	uint32_t from = 0;

	if (getrandom(&from, sizeof(from), GRND_NONBLOCK) < 0)
		from = (uint32_t)getpid();
	for (size_t i = 0; i < ARRAY_LEN(id_ranges); i++) {
		uint64_t first = id_ranges[i].first, mapped = ids_mapped(first);
		uint64_t room = id_ranges[i].end - first,
			 parts = (mapped < room ? mapped : room) / n;

		for (uint64_t k = 0; k < parts; k++) {
			uint64_t at = first + (from + k) % parts * n;

			if (!ids_lock(h->id_locks, at, n, true))
				continue;
			h->uid_base = (uint32_t)at;
			h->n_uids = n;
			return true;
		}
	}
	return false;
}

static int too_few_ids(struct err *e)
{
	return err_set(e, ERR_UNSUPPORTED,
		       "this user namespace has too few ids that are free to give sandboxes one "
		       "each: map more into it (unshare --map-auto), or run Holt in it as another "
		       "user than root (unshare --map-current-user)");
}

/* Takes as many ids as a later hub could request, if there are so many. */
static int choose_identity(struct host *h, uint32_t ids, bool root, struct err *e)
{
	const uint64_t room = IDS_END - IDS_FIRST;
	struct stat userns;
	uint64_t mapped;

	/* the cheapest call that needs CAP_SYS_ADMIN and changes nothing */
	if (geteuid() != 0 || unshare(CLONE_NEWUTS) < 0)
		return become_rootless(h, root, e);
	/* The kernel always gives the first one the same number. Where no number can be read it
	 * counts as another one. */
	h->nested = stat("/proc/self/ns/user", &userns) < 0 || userns.st_ino != 0xEFFFFFFD;
	/* The ids in use on this machine are locked in this file, one byte for each id. Without it
	 * another warden is only unlikely to have the same ids, as in containers that share no
	 * files. */
	h->id_locks = open(ID_LOCKS, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (h->id_locks < 0)
		log_info("%s: %s; ids of sandboxes are chosen without it", ID_LOCKS,
			 strerror(errno));
	mapped = ids_mapped(IDS_FIRST);
	h->n_ranges = (uint32_t)((mapped < room ? mapped : room) / ROOT_IDS);
	return take_ids(h, SANDBOXES_MAX) || take_ids(h, ids) ? 0 : too_few_ids(e);
}

static bool allowed_missing(const char *allow, const char *feature)
{
	size_t n = strlen(feature);

	for (const char *at = allow; (at = strstr(at, feature)); at += n) {
		if ((at == allow || at[-1] == ',') && (!at[n] || at[n] == ','))
			return true;
	}
	return false;
}

/* One ruleset for all sandboxes: allows everything below the base's root, except to make devices;
 * no signals and no abstract sockets across its border. */
static int make_landlock(struct store *s, struct err *e)
{
	struct {
		uint64_t fs, net, scoped;
	} attr = { .fs = (1ull << 13) - 1 };
	struct landlock_path_beneath_attr all = { .parent_fd = s->base_root };
	int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* VERSION */);
	size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
	int fd;

	if (abi < 1)
		return err_sys(e, errno, "Landlock");
	if (abi >= 2)
		attr.fs |= 1ull << 13; /* rename and link across directories */
	if (abi >= 3)
		attr.fs |= 1ull << 14; /* truncate */
	if (abi >= 6)
		attr.scoped = 3;
	fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (fd < 0)
		return err_sys(e, errno, "Landlock ruleset");
	all.allowed_access = attr.fs &
			     ~(LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK);
	if (syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &all, 0) < 0) {
		err_sys(e, errno, "Landlock rule");
		close(fd);
		return -1;
	}
	return fd;
}

static int check_requests(const struct wm_hello *m, struct err *e)
{
	if (m->pool > POOL_MAX || m->networks > NETS_MAX)
		return err_set(e, ERR_INVALID, "at most %d ready sandboxes and %d networks",
			       POOL_MAX, NETS_MAX);
	if (m->max_sandboxes > SANDBOXES_MAX - POOL_MAX)
		return err_set(e, ERR_INVALID, "at most %d sandboxes", SANDBOXES_MAX - POOL_MAX);
	return 0;
}

/* Applies what each hub may choose. */
static int take_requests(const struct wm_hello *m, struct err *e)
{
	const uint32_t sandboxes = m->max_sandboxes + m->pool;

	if (!warden.host.one_uid && sandboxes > warden.host.n_uids)
		return too_few_ids(e);
	warden.max_sandboxes = sandboxes;
	warden.pool_limits = m->limits;
	warden.pool_size = m->pool;
	warden.want_nets = m->networks;
	warden.host.files = m->files;
	memcpy(warden.host.closed, m->closed, sizeof(warden.host.closed));
	for (int i = 0; i < WIRE_CLOSED_MAX; i++)
		warden.host.closed[i][WIRE_PATH_MAX - 1] = '\0';
	return 0;
}

/* With fewer we could not even say which step lacked one. */
static int check_files(struct err *e)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_max >= FILES_LEAST)
		return 0;
	return err_set(e, ERR_LIMIT, "only %llu files may be open here (ulimit -n), %d are needed",
		       (unsigned long long)files.rlim_max, FILES_LEAST);
}

const struct seccomp_filter *warden_filter(unsigned kind, struct err *e)
{
	struct seccomp_filter *f = &warden.host.filters[kind];

	if (f->n || seccomp_build(f, kind) == 0)
		return f;
	err_set(e, ERR_BUG, "the system-call table is too large");
	return NULL;
}

int warden_setup(const struct wm_hello *m, const char *init, struct err *e)
{
	warden.net_maker = -1;
	if (check_requests(m, e) < 0 || check_files(e) < 0)
		return -1;
	store_begin();
	/* a later hub may request more; unused memory takes no space */
	warden.sandboxes = calloc(SANDBOXES_MAX, sizeof(*warden.sandboxes));
	warden.uid_refs = calloc(SANDBOXES_MAX, sizeof(*warden.uid_refs));
	warden.free_slots = calloc(SANDBOXES_MAX, sizeof(*warden.free_slots));
	if (!warden.sandboxes || !warden.uid_refs || !warden.free_slots)
		return err_set(e, ERR_LIMIT, "out of memory");
	warden.host.warden = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (warden.host.warden < 0)
		return err_sys(e, errno, "open a pidfd of the warden");
	/* while the host's files are visible; store.c copies it into the base namespace */
	warden.host.init = open(init, O_RDONLY | O_CLOEXEC);
	if (warden.host.init < 0)
		return err_sys(e, errno, "open holt-init");
	if (cgroups_init(&warden.cgroups, e) < 0)
		return -1;
	if (m->kept || warden.cgroups.dirs[CG_MEMORY] >= 0 ||
	    warden.cgroups.dirs[CG_FREEZER] >= 0) {
		if (janitor_start(&warden.cgroups, m->kept, e) < 0)
			return -1;
	}
	if (choose_identity(&warden.host, m->max_sandboxes + m->pool, m->root, e) < 0 ||
	    take_requests(m, e) < 0)
		return -1;
	warden.host.proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (warden.host.proc < 0 || store_init(&warden.store, &warden.host, &warden.cgroups, e) < 0)
		return -1;
	if (!warden_filter(0, e))
		return -1;
	while (prctl(PR_CAPBSET_READ, warden.host.last_cap + 1, 0, 0, 0) >= 0)
		warden.host.last_cap++;
	warden.host.landlock = make_landlock(&warden.store, e);
	if (warden.host.landlock < 0 && !allowed_missing(m->allow, "landlock"))
		return err_wrap(e, "required and not allowed to be missing");
	return 0;
}

int warden_set_anew(const struct wm_hello *m, struct err *e)
{
	if (warden.host.landlock < 0 && !allowed_missing(m->allow, "landlock"))
		return err_set(
			e, ERR_UNSUPPORTED,
			"the sandboxes that run are without Landlock, which is required and not "
			"allowed to be missing");
	return check_requests(m, e) < 0 ? -1 : take_requests(m, e);
}
