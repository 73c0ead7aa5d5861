#pragma once
/*
 * What the parts of holt-warden share; see warden.c for what the program is.
 *
 *	warden.c	the loop, the protocol with the hub
 *	body.c	sandboxes from making to end, the pool
 *	sleep.c	sandboxes without a process
 *	fork.c	forks, squashed layers
 *	keep.c	being without a hub, and the next one
 *	host.c	what is found and made at the start
 *	store.c	mount namespaces, templates, layers, overlays
 *	closed.c	folders of the host that no sandbox is given
 *	reroot.c	another root under a sandbox that runs
 *	broom.c	who removes layers
 *	image.c	images as the lowest layer
 *	copy.c	copying trees
 *	write.c	writing what a sandbox has changed
 *	walk.c	finding that out
 *	cgroup.c	limits by control groups
 *	usage.c	what is used of them
 *	yield.c	who computes gives way to who does not
 *	janitor.c	who removes what a killed warden leaves
 *	net.c	network namespaces made in advance
 *	spawn.c	a new process becomes PID 1 of a sandbox
 *	seccomp.c	the system-call filter
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"
#include "box/wire/limits.h"
#include "box/warden/seccomp.h"
#include "box/wire/wire.h"

enum {
	GUEST_UID = 1000, /* as seen inside */
	CHAIN_MAX = 120, /* frozen layers below one sandbox; a longer chain is squashed first */
	CHAIN_SQUASH = 20, /* past this it is squashed in the background */
	BINDS_MAX = 16,
};

/* ---- identity of the host --------------------------------------------------------------------- */

struct host {
	bool rootless; /* root only in a user namespace of our own */
	bool nested; /* root of another user namespace than the first, our own or a container's */
	uint32_t uid_base, n_uids; /* host uids of sandboxes: each family of forks has one */
	int id_locks; /* those ids are locked as long as it is open; -1: they are not */
	bool one_uid; /* every sandbox is uid_base: no more ids are ours to give */
	int proc; /* the host's /proc, O_PATH */
	int init; /* memfd of holt-init */
	int landlock; /* ruleset for every sandbox; -1 when allowed to be missing */
	struct seccomp_filter filter;
	int last_cap; /* the kernel's highest capability */
	uint64_t files; /* soft limit of descriptors that the user's other programs have */
	int warden; /* pidfd of this warden */
	/* folders that no sandbox is given; "": none */
	char closed[WIRE_CLOSED_MAX][WIRE_PATH_MAX];
};

/* ---- store ------------------------------------------------------------------------------------ */

/* One writable or frozen layer of files: a tmpfs of its own with the directories u and w; or an image, on u,
 * which is the lowest layer of a chain. */
struct layer {
	uint32_t id;
	uint32_t refs;
	int image; /* its folder, locked for as long as the layer is there; -1: it is none */
	bool of_host; /* an image over which the host's directories stand */
	uint32_t uid; /* whose all of an image is, on the host */
	uint64_t bytes; /* in use, set when it is frozen */
	bool complete; /* nothing of the layers below shows through: they are left out */
	bool rooted; /* the root of the sandbox whose writable layer it is stands over its w */
};

/* The layers of one sandbox, newest first; the template's skeleton is below all of them. */
struct chain {
	struct layer *upper;
	struct layer *frozen[CHAIN_MAX];
	uint32_t n_frozen;
};

struct bind {
	int tree; /* a detached copy of the host's mount */
	bool is_dir;
	char guest[4096];
};

/* What a sandbox is made from. */
struct origin {
	const char *image; /* absolute path of an image's folder; NULL: the template host */
	bool of_host; /* with an image: the host's directories stand over it */
};

/* Binds that sandboxes get: paths in the base namespace and inside. Of the host's directories those of images that are
 * not of the host get none. */
struct store {
	int ns_store, ns_base;
	int init; /* holt-init, O_PATH on the read-only base */
	int base_root; /* O_PATH of the base namespace's root, for Landlock */
	bool userxattr; /* marks of overlays are user.*: trusted.* takes the first user namespace */
	bool plain; /* no overlays, since they can't be had whole: each sandbox has copies of its own,
		       which it makes itself, of the skeleton or of the layer that it is forked from */
	uint64_t skel_bytes, skel_inodes; /* of the copied skeleton, above the disk limit */
	uint32_t last_layer;
	struct {
		char base[32], guest[64];
		bool of_host;
	} binds[BINDS_MAX];
	uint32_t n_binds;
};

/* Makes the two mount namespaces and the host template, and leaves the process in the store's. */
int store_init(struct store *s, const struct host *h, struct err *e) MUST_USE;

/* A new empty layer that holds at most `disk` bytes. */
struct layer *store_layer_new(struct store *s, uint64_t disk, struct err *e) MUST_USE;
/* Gives the first layer of a sandbox the home and work directories of its user. Where layers are
 * plain they are in the skeleton. */
int store_layer_own(const struct store *s, const struct layer *l, uint32_t uid,
		    struct err *e) MUST_USE;
/* The image of that origin as a frozen layer: its root/ read-only, all in it belonging to `uid`.
 * ERR_TEMPLATE_NOT_FOUND where it is not there (any more), ERR_UNSUPPORTED where layers are plain. */
struct layer *store_layer_image(struct store *s, const struct host *h, const struct origin *from,
				uint32_t uid, struct err *e) MUST_USE;
struct layer *layer_ref(struct layer *l);
void layer_unref(struct layer *l); /* the last one has it removed; NULL-safe */
void store_layer_remove(uint32_t id); /* of one that nobody has any more; may wait long */
void chain_fini(struct chain *c);
/* The image at the bottom; NULL: the host template's skeleton is there. */
const struct layer *chain_image(const struct chain *c);
/* Whether the host's directories stand over it. */
bool chain_of_host(const struct chain *c);

/* Changes how much a layer may hold. */
int store_layer_resize(const struct store *s, const struct layer *l, uint64_t disk,
		       struct err *e) MUST_USE;
uint64_t store_layer_used(const struct layer *l);

/* The merged view of a chain, as a detached mount. With no upper it is read-only. */
int store_overlay(const struct store *s, const struct chain *c, struct err *e) MUST_USE;
/* Where layers are plain: the writable layer of a chain, as a detached mount, and in *ret_fill the
 * open directory that is to be copied into it. That one is let go of by the chain. */
int store_plain(struct chain *c, int *ret_fill, struct err *e) MUST_USE;

/* Keeps the root of the sandbox of that writable layer beyond its process. */
int store_keep_root(const struct store *s, struct layer *upper, int pidfd, struct err *e) MUST_USE;
/* That root, as a detached mount. */
int store_kept_root(const struct layer *upper, struct err *e) MUST_USE;
void store_forget_root(struct layer *upper); /* no longer writable */

/* Puts a new root under a sandbox in which nothing runs but its PID 1, with all that is mounted in the
 * old one at the same place. The old root's layers are free when it returns; on failure all is as it was. */
int store_reroot(const struct store *s, const struct host *h, int pidfd, int root,
		 struct err *e) MUST_USE;

/* A host directory or file, to be bound into a sandbox, in which its owner on the host appears as `uid`. */
struct host_tree {
	const char *path;
	bool writable;
	uint64_t size; /* bytes that the host must end it at, else ERR_NO_QUOTA; 0: any */
	uint32_t uid;
};
/* A detached copy of its mount. ERR_DENIED for what is closed (closed.h); no link is followed. */
int store_host_tree(const struct host *h, const struct host_tree *t, bool *ret_is_dir,
		    struct err *e) MUST_USE;

/* A user namespace in which the owner and the group of st are `uid`, for an idmapped mount. -1 with errno. */
int store_idmap(const struct host *h, const struct stat *st, uint32_t uid);

/* Enter and leave the base namespace, whose few mounts a new sandbox starts from. */
int store_enter_base(const struct store *s);
int store_leave_base(const struct store *s);

/* An open directory of a layer's files. */
int store_layer_open(const struct layer *l);

/* Copies what is in the directory `from` into `to` (both open, both closed by it), with owners,
 * modes, times, links, holes and overlay marks. For a process of its own, since it takes as long
 * as it takes. 0 or an errno. */
int copy_tree(int from, int to);

/* What walk_changes() goes through: descriptors of directories, borrowed. */
struct walk_from {
	int merged; /* all that the sandbox sees of its files */
	int template; /* what it was made from */
	const int *
		layers; /* of what it wrote, the topmost first; none: merged is compared with template */
	size_t n_layers;
	uint32_t uid; /* of its files */
	uint64_t bytes_max; /* of the contents of files, holes included */
};

/* Writes to `out` what a sandbox that stands still has changed, as enum wm_write_what says. For a process of
 * its own. 0 or an errno: EFBIG over bytes_max, ENAMETOOLONG for a path that no archive can have. */
int walk_changes(const struct walk_from *from, enum wm_write_what what, int out);

/* ---- the broom --------------------------------------------------------------------------------- */

/* Starts it, in the store's mount namespace; it ends with the warden, and the layers with both. Should it end before, what
 * it had not yet removed stays until then. */
int broom_start(struct err *e) MUST_USE;
/* Has it remove a layer; false: it has enough to do, or has ended, so the caller has to. */
bool broom_take(uint32_t layer);

/* ---- control groups ---------------------------------------------------------------------------- */

enum { CG_MEMORY, CG_PIDS, CG_CPU, CG_FREEZER, CG_CONTROLLERS };

enum { CG_KEPT = 64 }; /* slots whose groups may stay for the next sandbox, where limits are v1's */

struct cgroups {
	enum limit_driver driver;
	bool v2[CG_CONTROLLERS];
	int dirs[CG_CONTROLLERS]; /* our own directory in each hierarchy, -1: not to be had */
	char name[64]; /* of those directories */
	int parents[CG_CONTROLLERS];
	bool aside; /* v2: hub and warden stand in a leaf of the parent */
	bool can_yield; /* the CPU's groups have cpu.idle */
	bool shared; /* v1: memory's hierarchy has pids or the CPU in it, too */
	struct limits kept[CG_KEPT]; /* what the groups hold that stay in a slot; pids 0: none do */
};

/* Finds what can be used and makes our directories; never fails for want of control groups: the
 * driver is then LIMIT_DRIVER_RLIMIT. */
int cgroups_init(struct cgroups *c, struct err *e) MUST_USE;
void cgroups_fini(struct cgroups *c); /* removes what is left of ours */

/* The sandbox's group in the v2 tree, made if need be, to clone into; -1: there is none. */
int cgroup_birthplace(struct cgroups *c, uint32_t slot);
/* 1: they are not all new, so that time of earlier sandboxes may be counted in them. */
int cgroup_new(struct cgroups *c, uint32_t slot, const struct limits *l, struct err *e) MUST_USE;
/* From the limits `was` to `l`. */
int cgroup_set(struct cgroups *c, uint32_t slot, const struct limits *l, const struct limits *was,
	       struct err *e) MUST_USE;
/* ERR_UNSUPPORTED for a limit that this host can't hold. */
int cgroup_check(const struct cgroups *c, const struct limits *l, struct err *e) MUST_USE;
/* Files of its v1 groups to which a thread writes "0" to enter them; returns how many. */
int cgroup_tasks(struct cgroups *c, uint32_t slot, int ret_fds[CG_CONTROLLERS],
		 struct err *e) MUST_USE;
int cgroup_freeze(struct cgroups *c, uint32_t slot, bool frozen, struct err *e) MUST_USE;
/* yields: it has what the others leave, and makes room at once for who wakes (cpu.idle).
 * ERR_UNSUPPORTED where !can_yield. */
int cgroup_yield(struct cgroups *c, uint32_t slot, bool yields, struct err *e) MUST_USE;
/* Readable counters for init: the file with oom_kill and the one with max; -1: none. */
void cgroup_events(struct cgroups *c, uint32_t slot, int *ret_oom, int *ret_pids);
/* The directory of its group for a controller, or with CGROUP_ALL that of all groups of ours; -1: there is none. */
#define CGROUP_ALL UINT32_MAX
int cgroup_open(const struct cgroups *c, int controller, uint32_t slot);
/* true when nothing is left of it. */
bool cgroup_remove(struct cgroups *c, uint32_t slot);

/* Removes what can be removed of our directories; true when that was all. */
bool cgroups_remove(const struct cgroups *c);
/* Undoes it that hub and warden have stepped aside, when none of it is needed any more. */
void cgroups_step_back(const struct cgroups *c);

/* ---- the janitor ------------------------------------------------------------------------------- */

/* Starts it; the warden is alive for it as long as the descriptor that is returned is open. kept: there
 * are a socket and a lock to remove, too. */
int janitor_start(const struct cgroups *c, bool kept, struct err *e) MUST_USE;

/* ---- a new sandbox ------------------------------------------------------------------------------ */

struct spawn {
	const struct host *host;
	const struct store *store;
	uint32_t uid; /* of the host */
	int socket; /* the child's end */
	int birthplace; /* v2 control group; -1: none */
	int net; /* network namespace; -1: it makes one */
	struct bind *binds;
	uint32_t n_binds;
	bool of_host; /* chain_of_host() of what it is made from */
	const struct limits *limits;
	enum limit_driver driver;
};

/* Starts the process; returns its pid and pidfd. It begins with its network, which takes as long
 * as all else, and meanwhile the warden makes the parts that it waits for. Then it talks:
 * IM_PARTS, IM_MAP_ME, IM_READY. */
pid_t spawn_start(const struct spawn *sp, int *ret_pidfd, struct err *e) MUST_USE;

/* Makes the calling process's network namespace anew, with its loopback up. */
int spawn_make_net(void);

/* What it is built from: its root (a detached mount), what is to be copied there, the counters of
 * its control groups (-1: none), and the groups to enter. All are closed by spawn_parts_fini(). */
struct spawn_parts {
	int root, fill, oom_events, pids_events;
	int tasks[CG_CONTROLLERS];
	uint32_t n_tasks;
};
#define SPAWN_PARTS_INIT ((struct spawn_parts){ -1, -1, -1, -1, { 0 }, 0 })
void spawn_parts_fini(struct spawn_parts *parts);
int spawn_give(int socket, const struct spawn_parts *parts, struct err *e) MUST_USE;

/* Answers IM_MAP_ME: guest uid 1000 is host uid `uid`. */
int spawn_map(const struct host *h, pid_t pid, uint32_t uid, struct err *e) MUST_USE;
