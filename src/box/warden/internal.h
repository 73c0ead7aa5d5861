#pragma once
/*
 * What the parts of holt-warden share; see warden.c for what the program is.
 *
 *	warden.c	the loop, the protocol with the hub
 *	body.c	sandboxes from making to end, the pool
 *	range.c	ids of sandboxes in which uid 0 is
 *	message.c	what the hub says, checked
 *	sleep.c	sandboxes without a process
 *	fork.c	forks, squashed layers
 *	keep.c	being without a hub, and the next one
 *	host.c	what is found and made at the start
 *	store.c	mount namespaces, templates, layers, overlays
 *	closed.c	folders of the host that no sandbox is given
 *	facts.c	what a sandbox sees of its limits
 *	reroot.c	another root under a sandbox that runs
 *	image.c	images as the lowest layer
 *	copy.c	copying trees
 *	write.c	writing what a sandbox has changed
 *	walk.c	finding that out
 *	cgroup.c	limits by control groups
 *	usage.c	what is used of them
 *	yield.c	who computes gives way to who does not
 *	helper.c	who removes layers, and what a killed warden leaves
 *	net.c	network namespaces made in advance
 *	spawn.c	a new process becomes PID 1 of a sandbox
 *	seccomp.c	the system-call filter
 */
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"
#include "box/warden/seccomp.h"
#include "box/wire/limits.h"
#include "box/wire/wire.h"

enum {
	GUEST_UID = 1000, /* as seen inside */
	ROOT_IDS = 65536, /* that a sandbox with root has, from 0 on */
	CHAIN_MAX = 120, /* frozen layers below one sandbox; a longer chain is squashed first */
	CPU_PERIOD_US = 100000, /* of a CPU limit */
	CHAIN_SQUASH = 20, /* past this it is squashed in the background */
	BINDS_MAX = 16,
};

/* ---- identity of the host -------------------------------------------------------------------- */

struct host {
	bool rootless; /* root only in a user namespace of our own */
	bool nested; /* root of another user namespace than the first, our own or a container's */
	uint32_t uid_base, n_uids; /* host uids of sandboxes: each family of forks has one */
	int id_locks; /* those ids are locked as long as it is open; -1: they are not */
	bool one_uid; /* every sandbox is uid_base: no more ids are ours to give */
	uint32_t n_ranges; /* of ROOT_IDS ids from IDS_FIRST on, as far as they are ours to give */
	bool has_range; /* rootless: ROOT_IDS ids are mapped, for all sandboxes with root */
	int proc; /* the host's /proc, O_PATH */
	int init; /* holt-init, as the host has it */
	int landlock; /* ruleset for every sandbox; -1 when allowed to be missing */
	/* by enum seccomp_kind; all but the first are made when they are needed */
	struct seccomp_filter filters[SECCOMP_KINDS];
	int last_cap; /* the kernel's highest capability */
	uint64_t files; /* soft limit of descriptors that the user's other programs have */
	int warden; /* pidfd of this warden */
	/* folders that no sandbox is given; "": none */
	char closed[WIRE_CLOSED_MAX][WIRE_PATH_MAX];
};

/* ---- store ----------------------------------------------------------------------------------- */

/* One writable or frozen layer of files: a tmpfs of its own with the directories u and w; or an
 * image, on u, which is the lowest layer of a chain. */
struct layer {
	uint32_t id;
	uint32_t refs;
	int image; /* its folder, locked for as long as the layer is there; -1: it is none */
	bool of_host; /* an image over which the host's directories stand */
	/* what the sandbox is made from: an image, or the skeleton as its root owns it */
	bool base;
	uint32_t uid; /* whose the root of a base is, on the host */
	uint64_t bytes; /* in use, set when it is frozen */
	bool complete; /* nothing of the layers below shows through: they are left out */
	bool rooted; /* the root of the sandbox whose writable layer it is stands over its w */
};

/* The layers of one sandbox, newest first; the template's skeleton is below all of them. */
struct chain {
	struct layer *upper;
	struct layer *frozen[CHAIN_MAX];
	uint32_t n_frozen;
	bool set_ids; /* set-id bits and capabilities of its files count */
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

/* Binds that sandboxes get: paths in the base namespace and inside. Of the host's directories those
 * of images that are not of the host get none. */
struct store {
	int ns_store, ns_base;
	int init; /* holt-init, O_PATH on the read-only base */
	int base_root; /* O_PATH of the base namespace's root, for Landlock */
	int facts; /* that root again, writable; nobody else has this mount */
	bool cgroups; /* struct cgroups' seen is at /t/cgroup in it */
	bool userxattr; /* marks of overlays are user.*: trusted.* takes the first user namespace */
	/* no overlays, since they can't be had whole: each sandbox has copies of its own, which it
	 * makes itself, of the skeleton or of the layer that it is forked from */
	bool plain;
	uint64_t skel_bytes, skel_inodes; /* of the copied skeleton, above the disk limit */
	uint32_t last_layer;
	struct {
		char base[32], guest[64];
		bool of_host;
	} binds[BINDS_MAX];
	uint32_t n_binds;
};

struct cgroups;

/* Makes the two mount namespaces and the host template, and leaves the process in the store's. */
int store_init(struct store *s, const struct host *h, const struct cgroups *c,
	       struct err *e) MUST_USE;

/* Whether the process that copies the skeleton has ended; reaps it. Waits for its end if told
 * to. */
bool store_settled(bool wait);

/* A new empty layer that holds at most `disk` bytes. */
struct layer *store_layer_new(struct store *s, uint64_t disk, struct err *e) MUST_USE;
/* Gives the first layer of a sandbox the home and work directories of its user; with root `uid` is
 * that of its uid 0. Where layers are plain they are in the skeleton. */
int store_layer_own(const struct store *s, const struct layer *l, uint32_t uid, bool root,
		    struct err *e) MUST_USE;
/* The image of that origin as a frozen layer: its root/ read-only, all in it belonging to `uid`.
 * ERR_TEMPLATE_NOT_FOUND where it is not there (any more), ERR_UNSUPPORTED where layers are
 * plain. */
struct layer *store_layer_image(struct store *s, const struct host *h, const struct origin *from,
				uint32_t uid, struct err *e) MUST_USE;
/* The skeleton as a frozen layer in which the host's ids from 0 on are those from `uid` on. */
struct layer *store_layer_skeleton(struct store *s, const struct host *h, uint32_t uid,
				   struct err *e) MUST_USE;
struct layer *layer_ref(struct layer *l);
void layer_unref(struct layer *l); /* the last one has it removed; NULL-safe */
void store_layer_remove(uint32_t id); /* of one that nobody has any more; may wait long */
void chain_fini(struct chain *c);
/* The base at the bottom; NULL: the skeleton is there, as it is. */
const struct layer *chain_base(const struct chain *c);
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

/* Puts a new root under a sandbox in which nothing runs but its PID 1, with all that is mounted in
 * the old one at the same place. The old root's layers are free when it returns; on failure all is
 * as it was. */
int store_reroot(const struct store *s, const struct host *h, int pidfd, int root,
		 struct err *e) MUST_USE;

/* A host directory or file, to be bound into a sandbox, in which its owner on the host appears as
 * `uid`. */
struct host_tree {
	const char *path;
	bool writable;
	uint64_t size; /* bytes that the host must end it at, else ERR_NO_QUOTA; 0: any */
	uint32_t uid;
};
/* A detached copy of its mount. ERR_DENIED for what is closed (closed.h); no link is followed. */
int store_host_tree(const struct host *h, const struct host_tree *t, bool *ret_is_dir,
		    struct err *e) MUST_USE;

/* n ids of a file system, from uid and gid on, and what they are in a mount of it. */
struct idmap {
	uint32_t uid, gid, to, n;
};
/* A user namespace for such an idmapped mount. -1 with errno. */
int store_idmap(const struct host *h, const struct idmap *m);

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
	/* its writable layers, the topmost first; none: compare merged with template */
	const int *layers;
	size_t n_layers;
	uint32_t uid, n_ids; /* of its files */
	uint64_t bytes_max; /* of the contents of files, holes included */
};

/* Writes to `out` what a sandbox that stands still has changed, as enum wm_write_what says. For a
 * process of its own. 0 or an errno: EFBIG over bytes_max, ENAMETOOLONG for a path that no archive
 * can have. */
int walk_changes(const struct walk_from *from, enum wm_write_what what, int out);

/* ---- the broom ------------------------------------------------------------------------------- */

/* Has it remove a layer; false: it has enough to do, or has ended, so the caller has to. The first
 * layer starts it, in the store's mount namespace; it ends with the warden, and the layers with
 * both. Should it end before, what it had not yet removed stays until then. */
bool broom_take(uint32_t layer);

/* ---- control groups -------------------------------------------------------------------------- */

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
	/* In the tree of v2: the path of our directory, with one for each slot (seen_slots); or of
	 * where we are ourselves; "": there is none. */
	char seen[1100];
	bool seen_slots;
	struct limits kept[CG_KEPT]; /* what the groups hold that stay in a slot; pids 0: none do */
};

/* Finds what can be used and makes our directories; never fails for want of control groups: the
 * driver is then LIMIT_DRIVER_RLIMIT. */
int cgroups_init(struct cgroups *c, struct err *e) MUST_USE;
void cgroups_fini(struct cgroups *c); /* removes what is left of ours */

/* Makes the memory group of a sandbox that is to be made later, with its limit. Gives a file to
 * which another process writes "0" to be counted there; -1 in *ret_fd where nobody counts. */
int cgroup_lend(struct cgroups *c, uint32_t slot, const struct limits *l, int *ret_fd,
		struct err *e) MUST_USE;
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
/* The directory of its group for a controller, or with CGROUP_ALL that of all groups of ours; -1:
 * there is none. */
#define CGROUP_ALL UINT32_MAX
int cgroup_open(const struct cgroups *c, int controller, uint32_t slot);
/* true when nothing is left of it. */
bool cgroup_remove(struct cgroups *c, uint32_t slot);

/* Removes what can be removed of our directories; true when that was all. */
bool cgroups_remove(const struct cgroups *c);
/* Undoes it that hub and warden have stepped aside, when none of it is needed any more. */
void cgroups_step_back(const struct cgroups *c);

/* ---- the janitor ----------------------------------------------------------------------------- */

/* Starts it; the warden is alive for it until helpers_end(). kept: there are a socket and a lock to
 * remove, too. */
int janitor_start(const struct cgroups *c, bool kept, struct err *e) MUST_USE;

/* Kills the broom, and lets the janitor do its work; both are then to be reaped. */
void helpers_end(void);

/* ---- a new sandbox --------------------------------------------------------------------------- */

struct spawn {
	const struct host *host;
	const struct store *store;
	const struct seccomp_filter *filter;
	const struct facts *facts;
	uint32_t slot; /* of its control groups */
	cpu_set_t cpus; /* that it is bound to; none: all of them */
	uint32_t uid; /* of the host */
	bool root; /* it is uid 0 inside */
	bool set_ids; /* with root: programs may have set-id bits, and capabilities */
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

/* Where all of the machine's memory is used up, the calling process, which nobody needs as much as
 * the hub and others, ends before them. /proc is read-only for sandboxes, so it stays. */
int spawn_raise_oom(int proc, int by);

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

/* Answers IM_MAP_ME: guest uid 1000 is host uid `uid`; with root the ids from 0 on are those from
 * `uid` on. */
int spawn_map(const struct host *h, pid_t pid, uint32_t uid, bool root, struct err *e) MUST_USE;

/* The warden's state and the bodies in it, shared by those of its files that change them; warden.h
 * lists all. */

enum body_state {
	BODY_FREE,
	BODY_STARTING, /* its process sets itself up */
	BODY_READY, /* in the pool */
	BODY_LIVE, /* the hub has it */
	BODY_DYING, /* killed; its end is awaited */
	BODY_SWEEPING, /* ended; its control groups are still busy */
};

/* Of a LIVE one; sleep.c has how they follow each other. */
enum body_sleep {
	BODY_AWAKE,
	BODY_FALLING, /* its process is killed; its end is awaited */
	BODY_ASLEEP, /* it has none */
	BODY_WAKING, /* its new process sets itself up */
};

/* One request of the hub that waits for bodies. */
struct request {
	uint32_t seq;
	uint32_t wanted, ready; /* bodies */
	struct body *bodies[WIRE_FORK_MAX];
	bool forsaken; /* the hub that made it is gone */
	bool failed;
	struct err err;
};

struct mount_spec {
	char *host, *guest;
	bool writable;
	uint64_t size; /* 0: any */
};

/* Of a sandbox since it was made, or since those before it in the same groups were. */
struct cpu_time {
	uint64_t ran_us; /* on all processors */
	uint64_t waited_us; /* while something of it waited for one */
};

struct body {
	enum body_state state;
	uint64_t key;
	pid_t pid;
	int pidfd;
	/* The hub's end of it; given away when it goes live, unless the warden outlives the hub or
	 * it has slept. */
	int socket;
	uint32_t uid;
	struct chain chain;
	struct limits limits;
	struct facts *facts; /* of these limits; NULL: it has not been started yet */
	struct facts *covered; /* those of the pool, below them; NULL: there are none */
	uint64_t cpu_before_us; /* of earlier sandboxes, in what its groups have counted */
	uint64_t looked_ms; /* whether it computes was last looked for; 0: not since it is awake */
	struct cpu_time cpu; /* then */
	uint64_t loud_ms; /* when it last did */
	bool yields; /* its group does */
	struct mount_spec mounts[WIRE_MOUNTS_MAX];
	uint32_t n_mounts;
	struct request *request; /* that it is made for; NULL: for the pool */
	bool filling; /* STARTING for the pool */
	uint32_t destroy_seq; /* to be answered when it is gone */
	bool answer_destroy;
	bool paused; /* frozen because the hub asked for it */
	uint64_t paused_ms; /* since when */
	enum body_sleep sleep;
	uint32_t sleep_seq, wake_seq; /* to be answered when it is asleep, awake; 0: nobody asks */
	/* LIVE: of the WM_CREATED of this hub that told of it; 0: of an earlier one's */
	uint32_t made_seq;
	uint64_t dies_at_ms; /* carried out by the warden when there is no hub; 0: never */
	char *record; /* owned, NULL: the hub has not confirmed it */
	size_t record_n;
	bool still; /* paused, as the record has it */
};

/* Work in a process of its own. */
struct job {
	pid_t pid; /* 0: free */
	int pidfd;
	struct body *source; /* NULL when it is gone meanwhile */
	struct layer *out;
	/* a fork: the request that goes on when the files are copied */
	struct request *request;
	bool frozen; /* by us */
	/* a squash: the layers that `out` replaces */
	struct chain squashed;
	/* writing what `source` has changed: the request to answer; 0: it is none */
	uint32_t write_seq;
	bool forsaken; /* who asked is gone */
	char image[WIRE_IMAGE_MAX];
};

enum { JOBS_MAX = 64, POOL_MAX = 64, NETS_MAX = 16 };

struct warden {
	struct host host;
	struct store store;
	struct cgroups cgroups;
	struct limits pool_limits;
	uint32_t pool_size, max_bodies; /* as the hub of the moment wishes */
	struct body *bodies; /* [BODIES_MAX] */
	uint32_t n_bodies; /* slots that were ever used: what loops look at */
	uint32_t *free_slots, n_free; /* of those, the free ones */
	struct body *ready[POOL_MAX];
	uint32_t n_ready, n_filling, n_sweeping, n_live;
	int nets[NETS_MAX]; /* network namespaces made in advance */
	uint32_t n_nets, want_nets;
	int net_maker; /* socket of the process that makes them; -1: none */
	pid_t net_maker_pid;
	struct job jobs[JOBS_MAX];
	uint32_t *uid_refs; /* [BODIES_MAX] */
	uint64_t last_key;
	int hub; /* -1: there is none at the moment */
	int epoll;
	uint64_t refill_at; /* clock_ms() */
	struct {
		uint64_t next_ms; /* 0: nobody is watched */
		uint32_t from; /* where the last pass ended */
		bool any; /* in the passes of this round */
	} looks; /* at who computes: yield.c */
	bool closing;
	bool kept; /* outlives its hub: see keep.c */
};

extern struct warden warden;

/* A message of the hub's: at least as long as the table in warden.c says. */
struct hub_message {
	const void *p; /* a struct wm_… that begins with wm_head */
	size_t n;
	int fd; /* came with it; -1: none. Borrowed */
};

/* Carries it out, and answers it now or later; -1: the error is the answer. */
typedef int hub_message_fn(const struct hub_message *in, struct err *e);

/* ---- warden.c: the hub and the loop ---- */

void send_hub(const void *msg, size_t n, const int *fds, size_t n_fds);
void send_failed(uint32_t seq, const struct err *e);
void send_pool(void);

/* Handles one message of the hub's, or its end. */
void hub_says(void);

enum tag { TAG_SOCKET, TAG_PIDFD, TAG_JOB, TAG_HUB, TAG_NET, TAG_LISTENER, TAG_MASK = 7 };
/* Has the loop tell when fd is readable; tag says which part of `what` it belongs to. */
int watch(int fd, const void *what, enum tag tag);
/* Closes it. Closing alone would not stop the telling, while a child that has not yet executed its
 * program still holds it. */
void unwatch(int *fd);

/* ---- keep.c ---- */

/* Begins to listen for the hub after this one. */
int keep_start(const struct wm_hello *m, struct err *e);
void hub_arrived(void); /* one wants to connect */
/* The first message of one that has connected, with its standard error or -1. */
void hub_begins(const struct wm_hello *m, size_t n, int log);
bool hub_is_new(void); /* it has not said it yet */
void hub_gone(void);
hub_message_fn end_with_hub;
hub_message_fn keep_record;
/* Does what is due while no hub does it; gives the time until there is more, -1: none. */
int keep_chores(uint64_t now);

/* ---- body.c ---- */

uint32_t slot_of(const struct body *b);
struct body *new_body(struct err *e);
struct body *find_body(uint64_t key); /* a live one; NULL: none */
struct body *find_awake(uint64_t key, struct err *e); /* one that has its process */
uint32_t share_uid(const struct body *b); /* one more of that family of forks */
void kill_body(struct body *b);
void sweep_body(struct body *b); /* the last step, possibly after some tries */
void body_died(struct body *b);
void body_says(struct body *b); /* its socket is readable while it sets itself up */

struct request *new_request(uint32_t seq, uint32_t wanted, struct err *e);
void drop_request_bodies(struct request *r);

/* Starts the process of a body whose frozen layers, uid, limits and mounts are set, on a new
 * writable layer of `disk` bytes; it answers later, on its socket. On failure the body is gone. */
int start_body(struct body *b, uint64_t disk, struct err *e);
int abandon_body(struct body *b); /* undoes what there is of it; -1 */
/* Starts another process of one that is asleep; likewise. On failure its pidfd tells whether there
 * is one. */
int restart_body(struct body *b, struct err *e);

hub_message_fn create;
bool pool_full(void); /* with those on the way */
void pool_refill(void); /* one more */

/* ---- range.c ---- */

/* ROOT_IDS ids that no other sandbox has, of this hub or another; in *ret the first. Without
 * privileges those of /etc/subuid and /etc/subgid, for all. ERR_UNSUPPORTED: there are none. */
int range_take(uint32_t *ret, struct err *e) MUST_USE;
void range_drop(const struct body *b); /* it has ended */
/* Without privileges, before the process is in its user namespace: starts a process that will map
 * that, this user as 0 and ROOT_IDS - 1 ids of its own behind. -1: the user has none. */
int range_map_start(void);
bool range_map(int go); /* in it; false: it could not be mapped so */

/* ---- sleep.c ---- */

hub_message_fn sleep_body; /* answers, unless it fails */
hub_message_fn wake_body; /* likewise */
void body_slept(
	struct body *b); /* its process is reaped, which was told to end, or to set itself up */
void body_awake(struct body *b); /* it has set itself up */
void wake_failed(struct body *b, const struct err *e); /* or could not */

/* ---- facts.c ---- */

/* What sandboxes with these limits see of them; for as long as one does. NULL with *e. */
struct facts *facts_take(const struct limits *l, struct err *e) MUST_USE;
/* Makes the files, if they are not there yet: takes longest of all that is done for the first
 * sandbox with these limits, so it is done while the sandbox's process makes its network. */
int facts_write(struct facts *f, struct err *e) MUST_USE;
void facts_drop(struct facts *f); /* NULL-safe */
/* How many processors a sandbox with these limits sees; 0: all of the machine's. */
uint32_t facts_cpus(const struct limits *l);
bool facts_limit_cpus(const struct facts *f);
/* Processors for one more sandbox; none: it needs no choice. */
void facts_place(const struct facts *f, cpu_set_t *ret);
/* Shows them in the mount namespace of the calling process, whose root and /proc are on /r. -1 with
 * errno. */
int facts_show(const struct facts *f, uint32_t slot) MUST_USE;
/* Shows them over others, which must stay as long, in a sandbox in which nothing has run yet. */
int facts_show_over(const struct facts *f, int pidfd, struct err *e) MUST_USE;

/* ---- usage.c ---- */

hub_message_fn say_usage;
/* Processor time in the groups of a slot, in microseconds; 0 where nobody counts. */
uint64_t cpu_counted(uint32_t slot);
bool cpu_time(uint32_t slot, struct cpu_time *ret); /* false: it can't be read */
/* What its memory limit still lets it have, in bytes; UINT64_MAX where nobody counts. */
uint64_t memory_left(const struct body *b);

/* ---- yield.c ---- */

void yield_watch(struct body *b); /* it is awake, which it was not */
void yield_paused(struct body *b, bool paused); /* before it is set */
void set_yields(struct body *b, bool yields); /* what is to end must not give way */
/* As cgroup_freeze(): what gives way could take long to stand still beside others. */
int freeze_body(struct body *b, bool frozen, struct err *e) MUST_USE;
int yield_chores(uint64_t now); /* gives the time until there is more, -1: none */

/* ---- socket.c ---- */

hub_message_fn give_socket; /* answers, unless it fails */

/* ---- fork.c ---- */

hub_message_fn fork_body;
hub_message_fn pause_body; /* answers, unless it fails */
void job_ended(struct job *j);
bool is_copied(const struct body *b); /* and frozen for that */
bool is_source(const struct body *b); /* some job reads its files */
void forget_source(const struct body *b); /* it ends: no job may touch it */
void forsake_copies(
	void); /* those of forks that a hub has left, and what it has written: they stop */
struct job *new_job(struct err *e);
/* Has job_ended() called when that process has ended, which fork() has given; -1: it is gone. */
int job_started(struct job *j, pid_t pid, struct err *e);
void thaw(const struct body *b);

/* ---- write.c ---- */

/* fd is borrowed. Answers when all is written. */
hub_message_fn write_body;
void written(struct job *j, int errnum);

/* ---- net.c ---- */

/* A network namespace with its loopback up; -1: none is ready, the sandbox makes its own. */
int net_take(void);
bool nets_full(void); /* or being made */
void nets_refill(void);
void net_arrived(void); /* the maker's socket is readable */
void nets_fini(void);

/* ---- host.c ---- */

int warden_setup(const struct wm_hello *m, const char *init, struct err *e);
/* The filter of that kind (bits of enum seccomp_kind), made if need be; NULL with *e. */
const struct seccomp_filter *warden_filter(unsigned kind, struct err *e);
/* Locks ids, or with `lock` false lets go of them. False: another warden has some of them. */
bool ids_lock(int locks, uint64_t first, uint64_t n, bool lock);
#define IDS_FIRST 1900000000u /* of a range that no known allocator of ids uses */
#define IDS_END 2147352576u
/* Takes over what another hub wishes of a warden that is set up. */
int warden_set_anew(const struct wm_hello *m, struct err *e);
