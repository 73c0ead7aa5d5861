#pragma once
/*
 * Declarations that the parts of holt-warden share; warden.c says what the program does.
 *
 *	warden.c	the loop, the protocol with the hub
 *	sandbox.c	sandboxes from making to end, the pool
 *	range.c	ids of sandboxes in which uid 0 is mapped
 *	message.c	checks of the hub's messages
 *	sleep.c	sandboxes without a process
 *	fork.c	forks, squashed layers
 *	keep.c	life without a hub, and the next hub
 *	host.c	set-up at the start
 *	store.c	mount namespaces, templates, layers, overlays
 *	closed.c	folders of the host that no sandbox is given
 *	facts.c	the limits as a sandbox sees them
 *	reroot.c	a new root under a running sandbox
 *	image.c	images as the lowest layer
 *	copy.c	copies of trees
 *	write.c	writes a sandbox's changes
 *	walk.c	finds these changes
 *	cgroup.c	limits by control groups
 *	usage.c	what sandboxes use of their limits
 *	yield.c	busy sandboxes give way to others
 *	helper.c	removes layers, and what a killed warden leaves
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
#include "box/warden/project.h"
#include "box/warden/seccomp.h"
#include "box/wire/limits.h"
#include "box/wire/wire.h"

enum {
	GUEST_UID = 1000, /* as a sandbox sees it */
	ROOT_IDS = 65536, /* that a sandbox with root has, from 0 on */
	CHAIN_MAX = 120, /* frozen layers below one sandbox; a longer chain is squashed first */
	CPU_PERIOD_US = 100000, /* the period of a CPU limit */
	CHAIN_SQUASH = 20, /* a longer chain is squashed in the background */
	BINDS_MAX = 16,
};

/* ---- identity of the host -------------------------------------------------------------------- */

struct host {
	bool rootless; /* we are root only in a user namespace of our own */
	/* we are root of a user namespace that is not the first: our own or a container's */
	bool nested;
	uint32_t uid_base, n_uids; /* host uids of sandboxes: each family of forks has one */
	int id_locks; /* the ids are locked while this is open; -1: they are not locked */
	bool one_uid; /* every sandbox has uid_base: we may give out no other ids */
	uint32_t n_ranges; /* ranges of ROOT_IDS ids, from IDS_FIRST on, that we may give out */
	bool has_range; /* rootless: ROOT_IDS ids are mapped, for all sandboxes with root */
	int proc; /* the host's /proc, O_PATH */
	int init; /* holt-init in the host's tree */
	int landlock; /* the ruleset for every sandbox; -1 if it is allowed to be missing */
	/* by enum seccomp_kind; all but the first are made when needed */
	struct seccomp_filter filters[SECCOMP_KINDS];
	int last_cap; /* the kernel's highest capability */
	uint64_t files; /* soft limit of descriptors that the user's other programs have */
	int warden; /* pidfd of this warden */
	/* folders that no sandbox is given; "": none */
	char closed[WIRE_CLOSED_MAX][WIRE_PATH_MAX];
};

/* ---- store ----------------------------------------------------------------------------------- */

/* One writable or frozen layer of files: a tmpfs of its own with the directories u and w; or an
 * image, mounted on u, which is the lowest layer of a chain. */
struct layer {
	uint32_t id;
	uint32_t refs;
	/* the folder of an image or workspace, locked while the layer exists; -1: it is neither */
	int image;
	bool workspace; /* an attached tree */
	bool mounted; /* its files are a mount of their own, below the layer's folder */
	bool of_host; /* an image that the host's directories are bound over */
	/* what the sandbox is made from: an image, or the skeleton as its root owns it */
	bool base;
	uint32_t uid; /* owner of the root of a base, on the host */
	uint64_t bytes; /* bytes in use, set when the layer is frozen */
	bool complete; /* nothing of the layers below shows through: they are left out */
	bool rooted; /* the sandbox with this writable layer has its root mounted over w */
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
	bool is_empty; /* an empty folder instead: what is no folder may stay in its place */
	const struct project *project; /* NULL: it is none, or nothing is kept */
	char guest[4096];
};

/* The template of a new sandbox. */
struct origin {
	const char *image; /* absolute path of an image's folder; NULL: the template "host" */
	bool of_host; /* with an image: the host's directories are bound over it */
};

/* Binds for sandboxes: paths in the base namespace and inside. Those of the host's directories are
 * left out for images without of_host. */
struct store {
	int ns_store, ns_base;
	int init; /* holt-init, O_PATH on the read-only base */
	int base_root; /* O_PATH of the base namespace's root, for Landlock */
	int facts; /* the same root, writable; nobody else has this mount */
	unsigned n_cgroups; /* so many of struct cgroups' seen are at /t/cgroup/N in it */
	/* overlays keep their marks in user.*: trusted.* needs the first user namespace */
	bool userxattr;
	/* Overlays don't fully work here, so there are none: each sandbox makes its own copy of the
	 * skeleton, or of the layer that it is forked from. */
	bool plain;
	uint64_t skel_bytes, skel_inodes; /* used by the copied skeleton, added to the disk limit */
	uint32_t last_layer;
	struct {
		char base[32], guest[64];
		bool of_host;
		bool layered; /* store_host_layer() works for it */
	} binds[BINDS_MAX];
	uint32_t n_binds;
};

struct cgroups;

/* Begins to copy the host template's skeleton, where this process may do that already. */
void store_begin(void);

/* Makes the two mount namespaces and the host template, and leaves the process in the namespace of
 * the store. */
int store_init(struct store *s, const struct host *h, const struct cgroups *c,
	       struct err *e) MUST_USE;

/* A directory of the host at `base` in the base namespace, with inodes that no other sandbox and
 * nobody outside has: what watches or locks a file sees one's own programs alone. In the namespace
 * of a sandbox that starts. A detached mount, or -1 with errno. */
int store_host_layer(const struct store *s, const char *base);

/* Whether the process that copies the skeleton has ended; reaps it. With `wait`, waits for its
 * end. */
bool store_settled(bool wait);

/* Makes an empty layer for at most `disk` bytes. */
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
/* The tree of a workspace as a frozen layer, likewise. */
struct layer *store_layer_workspace(struct store *s, const struct host *h, const char *folder,
				    uint32_t uid, struct err *e) MUST_USE;
/* The skeleton as a frozen layer in which the host's ids from 0 on are those from `uid` on. */
struct layer *store_layer_skeleton(struct store *s, const struct host *h, uint32_t uid,
				   struct err *e) MUST_USE;
struct layer *layer_ref(struct layer *l);
void layer_unref(struct layer *l); /* the last reference removes it; NULL-safe */
void store_layer_remove(uint32_t id); /* of a layer without references; may take long */
void chain_fini(struct chain *c);
/* The base at the bottom; NULL: the skeleton is there, as it is. */
const struct layer *chain_base(const struct chain *c);
/* The image at the bottom; NULL: the host template's skeleton is there. */
const struct layer *chain_image(const struct chain *c);
/* Whether the host's directories stand over it. */
bool chain_of_host(const struct chain *c);

/* Changes the size of a layer. */
int store_layer_resize(const struct store *s, const struct layer *l, uint64_t disk,
		       struct err *e) MUST_USE;
uint64_t store_layer_used(const struct layer *l);

/* Returns the merged view of a chain, as a detached mount. Without an upper layer it is
 * read-only. */
int store_overlay(const struct store *s, const struct chain *c, struct err *e) MUST_USE;
/* Where layers are plain: returns the writable layer of a chain as a detached mount, and in
 * *ret_fill the open directory to be copied into it, which the chain then gives up. */
int store_plain(struct chain *c, int *ret_fill, struct err *e) MUST_USE;

/* Keeps the root of the sandbox with that writable layer after its process has ended. */
int store_keep_root(const struct store *s, struct layer *upper, int pidfd, struct err *e) MUST_USE;
/* Returns that root, as a detached mount. */
int store_kept_root(const struct layer *upper, struct err *e) MUST_USE;
void store_forget_root(struct layer *upper); /* the layer is no longer writable */

/* Gives a sandbox, in which nothing but its PID 1 runs, a new root, with all that is mounted in the
 * old one at the same places. When it returns, the layers of the old root are no longer in use. On
 * failure nothing has changed. */
int store_reroot(const struct store *s, const struct host *h, int pidfd, int root,
		 struct err *e) MUST_USE;

/* A host directory or file, to be bound into a sandbox. Inside, its owner on the host appears as
 * `uid`. */
struct host_tree {
	const char *path;
	bool writable;
	bool own; /* a file of the closed folders; read-only */
	bool state; /* it may be below BOX_STATE of one */
	struct project *project; /* keeps its entries for the host's programs; NULL: nothing does */
	uint64_t size; /* size at which the host must limit it, else ERR_NO_QUOTA; 0: any */
	uint32_t uid;
};
/* Returns a detached copy of its mount. ERR_DENIED for closed folders (closed.h). Follows no
 * link. */
int store_host_tree(const struct host *h, const struct host_tree *t, bool *ret_is_dir,
		    struct err *e) MUST_USE;

/* Returns an empty folder that nobody may write, as a detached mount. */
int store_empty_tree(struct err *e) MUST_USE;

/* n ids of a file system, from uid and gid on, and what they are in a mount of it. */
struct idmap {
	uint32_t uid, gid, to, n;
};
/* A user namespace for such an idmapped mount. -1 with errno. */
int store_idmap(const struct host *h, const struct idmap *m);

/* Enters the base namespace, whose few mounts a new sandbox starts with. */
int store_enter_base(const struct store *s);
/* From there, or from a sandbox's namespace. Where that can't be done the warden ends: its paths
 * would be that sandbox's. */
void store_return(const struct store *s);

/* Opens the directory of a layer's files. */
int store_layer_open(const struct layer *l);

/* Copies the contents of the directory `from` into `to` (both open, both closed by it), with
 * owners, modes, times, links, holes and overlay marks. Run it in a process of its own, since it
 * may take long. Returns 0 or an errno. */
int copy_tree(int from, int to);

/* The trees that walk_changes() compares: descriptors of directories, borrowed. */
struct walk_from {
	int merged; /* the files as the sandbox sees them */
	int template; /* the files that it was made from */
	/* its writable layers, the topmost first; none: compare merged with template */
	const int *layers;
	size_t n_layers;
	const char *only; /* compare only this directory of the top; NULL: everything */
	uint32_t uid, n_ids; /* the owner of its files */
	uint64_t bytes_max; /* limit of all contents, holes included */
};

/* Writes to `out` what a paused or idle sandbox has changed, in the form that enum wm_write_what
 * says. Run it in a process of its own. Returns 0 or an errno: EFBIG over bytes_max, ENAMETOOLONG
 * for a path that is too long for an archive. */
int walk_changes(const struct walk_from *from, enum wm_write_what what, int out);

/* ---- the broom ------------------------------------------------------------------------------- */

/* Makes the broom remove a layer. False: its queue is full, or it has ended, so the caller has to
 * remove it. The first layer starts the broom, in the store's mount namespace. It ends with the
 * warden, and the layers end with both. If it ends earlier, the layers in its queue stay until
 * then. */
bool broom_take(uint32_t layer);

/* ---- control groups -------------------------------------------------------------------------- */

enum { CG_MEMORY, CG_PIDS, CG_CPU, CG_FREEZER, CG_CONTROLLERS };

/* slots whose groups may stay for the next sandbox, where v1 holds the limits */
enum { CG_KEPT = 64 };

/* A directory of a hierarchy: our own, with one for each slot, or where we are ourselves. */
struct cgroup_seen {
	char path[1100];
	bool slots;
	const char *at; /* the place below /sys/fs/cgroup; "": that itself */
};
enum { CG_SEEN = 4 };

struct cgroups {
	enum limit_driver driver;
	bool v2[CG_CONTROLLERS];
	int dirs[CG_CONTROLLERS]; /* our own directory in each hierarchy; -1: not available */
	char name[64]; /* name of those directories */
	int parents[CG_CONTROLLERS];
	bool aside; /* v2: hub and warden have moved into a leaf of the parent */
	bool can_yield; /* the CPU's groups have cpu.idle */
	bool shared; /* v1: the hierarchy of memory also has pids or the CPU */
	/* The hierarchies that facts.c shows to sandboxes: those of v1 where v1 limits memory,
	 * else the tree of v2; none: n_seen is 0. */
	struct cgroup_seen seen[CG_SEEN];
	unsigned n_seen;
	/* limits set in the groups that stay in a slot; pids 0: no groups */
	struct limits kept[CG_KEPT];
};

/* Finds usable controllers and makes our directories. A lack of control groups is no failure: the
 * driver is then LIMIT_DRIVER_RLIMIT. */
int cgroups_init(struct cgroups *c, struct err *e) MUST_USE;
void cgroups_fini(struct cgroups *c); /* removes what is left of our directories */

/* Makes the memory group of a sandbox that is to be made later, with its limit. Gives a file: a
 * process that writes "0" to it is counted there. -1 in *ret_fd where there is no memory
 * controller. */
int cgroup_lend(struct cgroups *c, uint32_t slot, const struct limits *l, int *ret_fd,
		struct err *e) MUST_USE;
/* The sandbox's group in the v2 tree, made if it does not exist, to clone into; -1: there is
 * none. */
int cgroup_birthplace(struct cgroups *c, uint32_t slot);
/* 1: some of the groups are not new, so they may have counted time of earlier sandboxes. */
int cgroup_new(struct cgroups *c, uint32_t slot, const struct limits *l, struct err *e) MUST_USE;
/* Changes the limits from `was` to `l`. */
int cgroup_set(struct cgroups *c, uint32_t slot, const struct limits *l, const struct limits *was,
	       struct err *e) MUST_USE;
/* ERR_UNSUPPORTED for a limit that this host can't hold. */
int cgroup_check(const struct cgroups *c, const struct limits *l, struct err *e) MUST_USE;
/* Gives the files of its v1 groups to which a thread writes "0" to enter them; returns how many. */
int cgroup_tasks(struct cgroups *c, uint32_t slot, int ret_fds[CG_CONTROLLERS],
		 struct err *e) MUST_USE;
int cgroup_freeze(struct cgroups *c, uint32_t slot, bool frozen, struct err *e) MUST_USE;
/* yields: the group gets only the processor time that others leave, and is preempted at once by one
 * that wakes (cpu.idle). ERR_UNSUPPORTED where !can_yield. */
int cgroup_yield(struct cgroups *c, uint32_t slot, bool yields, struct err *e) MUST_USE;
/* Readable counters for init: the file with oom_kill and the one with max; -1: none. */
void cgroup_events(struct cgroups *c, uint32_t slot, int *ret_oom, int *ret_pids);
/* Opens the directory of its group for a controller, or with CGROUP_ALL that of all our groups; -1:
 * there is none. */
#define CGROUP_ALL UINT32_MAX
int cgroup_open(const struct cgroups *c, int controller, uint32_t slot);
/* true when nothing is left of it */
bool cgroup_remove(struct cgroups *c, uint32_t slot);

/* Removes what it can of our directories; true when nothing is left. */
bool cgroups_remove(const struct cgroups *c);
/* Moves hub and warden back out of their leaf, when no group of ours is needed any more. */
void cgroups_step_back(const struct cgroups *c);

/* Small files of the kernel, in dir or absolute. A read takes one page at most; false: there is
 * nothing. 0 or -1. */
enum { KERNEL_TEXT_MAX = 4096 };
bool text_read(int dir, const char *file, char text[KERNEL_TEXT_MAX]);
int text_write(int dir, const char *file, const char *text);

/* ---- the janitor ----------------------------------------------------------------------------- */

/* Starts it. It takes the warden for alive until helpers_end(). kept: it also has to remove a
 * socket and a lock. */
int janitor_start(const struct cgroups *c, bool kept, struct err *e) MUST_USE;

/* Kills the broom, and lets the janitor begin its work; the caller reaps both. */
void helpers_end(void);

/* ---- a new sandbox --------------------------------------------------------------------------- */

struct spawn {
	const struct host *host;
	const struct store *store;
	const struct seccomp_filter *filter;
	const struct facts *facts;
	uint32_t slot; /* of its control groups */
	cpu_set_t cpus; /* processors that it is bound to; none: all of them */
	uint32_t uid; /* on the host */
	bool root; /* it is uid 0 inside */
	bool set_ids; /* with root: programs may have set-id bits, and capabilities */
	int socket; /* the child's end */
	int birthplace; /* v2 control group; -1: none */
	int net; /* network namespace; -1: it makes one */
	struct bind *binds;
	uint32_t n_binds;
	bool of_host; /* chain_of_host() of its template */
	const struct limits *limits;
	enum limit_driver driver;
};

/* Starts the process; returns its pid and pidfd. It makes its network first, which takes half of
 * the time, while the warden makes the parts that it needs next. Then it sends IM_PARTS, IM_MAP_ME,
 * IM_READY. */
pid_t spawn_start(const struct spawn *sp, int *ret_pidfd, struct err *e) MUST_USE;

/* Makes the kernel kill the calling process before the hub and others when the machine is out of
 * memory. /proc is read-only for sandboxes, so they can't change it back. above: the processes that
 * it starts get a score above its own, so it leaves room for that. Returns the open file of its
 * score, or -1 with errno. */
int spawn_raise_oom(int proc, int by, bool above);

/* Gives the calling process a new network namespace, with its loopback up. */
int spawn_make_net(void);

/* The parts of a new sandbox: its root (a detached mount), what is to be copied there, the counters
 * of its control groups (-1: none), and the groups to enter. spawn_parts_fini() closes all. */
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

/* The warden's state and its sandboxes, used by the files that change them. */

enum sandbox_state {
	SANDBOX_FREE,
	SANDBOX_STARTING, /* its process sets itself up */
	SANDBOX_READY, /* in the pool */
	SANDBOX_LIVE, /* the hub has it */
	SANDBOX_DYING, /* killed; its end is awaited */
	SANDBOX_SWEEPING, /* ended; its control groups are still busy */
};

/* The sleep state of a LIVE sandbox; sleep.c describes the transitions. */
enum sandbox_sleep {
	SANDBOX_AWAKE,
	SANDBOX_FALLING, /* its process is killed; its end is awaited */
	SANDBOX_ASLEEP, /* it has no process */
	SANDBOX_WAKING, /* its new process sets itself up */
};

/* One request of the hub that waits for sandboxes. */
struct request {
	uint32_t seq;
	uint32_t wanted, ready; /* counts of sandboxes */
	struct sandbox *sandboxes[WIRE_FORK_MAX];
	bool forsaken; /* the hub that made it is gone */
	bool failed;
	struct err err;
};

struct mount_spec {
	char *host, *guest; /* host "": an empty folder */
	bool writable;
	bool all; /* also what programs of the host act on */
	bool own; /* of the hub's own folders */
	bool state; /* it may be what the hub keeps for agents */
	struct project project;
	uint64_t size; /* 0: any */
};

/* Processor time of a sandbox since it was made, or since earlier ones in the same groups were. */
struct cpu_time {
	uint64_t ran_us; /* on all processors */
	uint64_t waited_us; /* while any of its tasks waited for one */
};

struct sandbox {
	enum sandbox_state state;
	uint64_t key;
	pid_t pid;
	int pidfd;
	/* The hub's end of its socket; given away when it goes LIVE, unless the warden outlives the
	 * hub or the sandbox has slept. */
	int socket;
	/* Its network namespace, which lasts while it sleeps since sockets of others are in it; -1:
	 * it has none but that of its process. */
	int net;
	uint32_t uid;
	bool has_range; /* of ids, from uid on, which range.c has locked */
	struct chain chain;
	struct limits limits;
	struct facts *facts; /* facts for these limits; NULL: it has not been started yet */
	struct facts *covered; /* facts of the pool, mounted below these; NULL: none */
	uint64_t cpu_before_us; /* time of earlier sandboxes that its groups have counted */
	uint64_t looked_ms; /* when its use of processors was last checked; 0: not since it woke */
	struct cpu_time cpu; /* at that check */
	uint64_t loud_ms; /* when it last was busy */
	uint64_t hurry_ms; /* until then it does not give way */
	bool yields; /* its group has cpu.idle set */
	struct mount_spec mounts[WIRE_MOUNTS_MAX];
	uint32_t n_mounts;
	struct request *request; /* the request that it is made for; NULL: for the pool */
	bool filling; /* STARTING for the pool */
	uint32_t destroy_seq; /* request to answer when it is gone */
	bool answer_destroy;
	bool paused; /* frozen because the hub asked for it */
	uint64_t paused_ms; /* when it was paused */
	enum sandbox_sleep sleep;
	uint32_t sleep_seq, wake_seq; /* requests to answer when it is asleep or awake; 0: none */
	/* LIVE: the seq of the WM_CREATED by which this hub learned of it; 0: it is from an earlier
	 * hub */
	uint32_t made_seq;
	uint64_t dies_at_ms; /* ended by the warden at this time if there is no hub; 0: never */
	uint32_t idle_ms; /* likewise when there was none for so long; 0: not */
	char *record; /* owned; NULL: the hub has not confirmed it */
	size_t record_n;
	bool still; /* paused according to the record */
};

/* A task that runs in a process of its own. */
struct job {
	pid_t pid; /* 0: free */
	int pidfd;
	struct sandbox *source; /* NULL if it has ended meanwhile */
	struct layer *out;
	/* for a fork: the request that continues when the files are copied */
	struct request *request;
	bool frozen; /* we have frozen the source */
	/* for a squash: the layers that `out` replaces */
	struct chain squashed;
	/* for writing the changes of `source`: the request to answer; 0: none */
	uint32_t write_seq;
	bool forsaken; /* the hub that asked is gone */
	char image[WIRE_IMAGE_MAX];
	bool attached; /* what is written are changes to an attached tree */
};

enum { JOBS_MAX = 64, POOL_MAX = 64, NETS_MAX = 16 };

struct warden {
	struct host host;
	struct store store;
	struct cgroups cgroups;
	struct limits pool_limits;
	uint32_t pool_size, max_sandboxes; /* as the present hub requested */
	struct sandbox *sandboxes; /* [SANDBOXES_MAX] */
	uint32_t n_sandboxes; /* slots that were ever used: loops end there */
	uint32_t *free_slots, n_free; /* the free ones among those */
	struct sandbox *ready[POOL_MAX];
	uint32_t n_ready, n_filling, n_sweeping, n_live;
	int nets[NETS_MAX]; /* network namespaces made in advance */
	uint32_t n_nets, want_nets;
	int net_maker; /* socket of the process that makes them; -1: none */
	pid_t net_maker_pid;
	struct job jobs[JOBS_MAX];
	uint32_t *uid_refs; /* [SANDBOXES_MAX] */
	uint64_t last_key;
	int hub; /* -1: there is none at present */
	int epoll;
	uint64_t refill_at; /* clock_ms() */
	struct {
		uint64_t next_ms; /* 0: no sandbox is watched */
		uint32_t from; /* where the last pass ended */
		bool any; /* a sandbox was watched in this round */
	} looks; /* checks for busy sandboxes: yield.c */
	bool closing;
	bool kept; /* outlives its hub: see keep.c */
};

extern struct warden warden;

/* A message from the hub, not shorter than the table in warden.c says. */
struct hub_message {
	const void *p; /* a struct wm_… that begins with wm_head */
	size_t n;
	int fd; /* received with it; -1: none. Borrowed */
};

/* Carries out a message and answers it, now or later. -1: the error is the answer. */
typedef int hub_message_fn(const struct hub_message *in, struct err *e);

/* ---- warden.c: the hub and the loop ---- */

void send_hub(const void *msg, size_t n, const int *fds, size_t n_fds);
void send_failed(uint32_t seq, const struct err *e);
void send_pool(void);

/* Handles one message from the hub, or the end of the connection. */
void hub_says(void);

enum tag {
	TAG_SOCKET,
	TAG_PIDFD,
	TAG_JOB,
	TAG_HUB,
	TAG_NET,
	TAG_LISTENER,
	TAG_SEALS,
	TAG_MASK = 7
};
/* Makes the loop report when fd is readable; tag says which part of `what` it belongs to. */
int watch(int fd, const void *what, enum tag tag);
/* Removes the watch and closes fd. Closing alone would not remove it while a child that has not yet
 * executed its program still holds fd. */
void unwatch(int *fd);

/* ---- seals.c ---- */

/* Begins to watch a folder that is held. */
int seals_watch(struct project *p, struct err *e) MUST_USE;
void seals_forget(struct project *p);
void seals_changed(void);
/* Seals what was changed while its sandboxes were made. */
int seals_complete(struct request *r, struct err *e) MUST_USE;
/* A watch of a directory in dir, or -1 with errno; and no watch any more, unless it is needed. */
int seals_add(int dir, const char *name);
void seals_drop(const struct project *p, int wd);
int seals_chores(uint64_t now); /* returns the time until the next are due; -1: none */

/* ---- planted.c ---- */

struct inotify_event;

struct planted_dir {
	int wd; /* inotify's watch of it; -1: none */
	size_t base; /* bytes of its path that name the repository, or the worktree's part of it */
	char *path; /* below the folder; owned */
};

/* Whether something in a git directory is what git never makes there, and would write through. */
bool planted_is(int dir, const char *name, struct stat *st);
/* Whether git or an extension makes a directory of this name in a git directory. */
bool planted_is_gits(const char *name);
/* Removes it, if it is new; ret_target: where it led, "" for a pipe. False: it stays. */
bool planted_take(const struct project *p, int dir, const char *name,
		  char ret_target[WIRE_PATH_MAX]);
/* Watches the directories that git writes in, which may be others than before, and looks at all
 * that is in them. */
int planted_watch(struct project *p, struct err *e) MUST_USE;
bool planted_has_watch(const struct project *p, int wd);
void planted_forget(struct project *p);
/* Looks at what has come into a directory. */
void planted_note(struct project *p, const struct inotify_event *v);
/* Looks at all if too much has come, or says how long that has to wait; -1: nothing has. After each
 * read of events. -1: it can't. */
int planted_chores(struct project *p, uint64_t now, int *ret_wait) MUST_USE;

/* ---- left.c ---- */

/* Tells in the log what a sandbox has left in a folder. Looks in a process of its own. */
void left_start(const struct project *p);
hub_message_fn look_at_left;
/* A bit for each kind of repository, but for git's, that the directory has. */
unsigned left_repositories(int dir);
/* Which files git is told not to look at (git update-index --skip-worktree): 0 for none. */
uint64_t left_hidden(const struct project *p, int dir);
int left_chores(void); /* as seals_chores() */
void left_end(void); /* soon, as the warden ends */

/* ---- keep.c ---- */

/* Begins to listen for the hub after this one. */
int keep_start(const struct wm_hello *m, struct err *e);
void hub_arrived(void); /* a hub wants to connect */
/* The first message of a hub that has connected, with its standard error or -1. */
void hub_begins(const struct wm_hello *m, size_t n, int log);
bool hub_is_new(void); /* it has not sent its first message yet */
void hub_gone(void);
hub_message_fn end_with_hub;
hub_message_fn keep_record;
/* Does what is due while there is no hub; returns the time until more is due, -1: nothing. */
int keep_chores(uint64_t now);

/* ---- sandbox.c ---- */

uint32_t slot_of(const struct sandbox *b);
struct sandbox *sandbox_new(struct err *e);
struct sandbox *sandbox_find(uint64_t key); /* a LIVE one; NULL: none */
struct sandbox *find_awake(uint64_t key, struct err *e); /* an awake one */
void share_ids(struct sandbox *b, const struct sandbox *source); /* one more of a family of forks */
void sandbox_kill(struct sandbox *b);
void sandbox_sweep(struct sandbox *b); /* the last step, tried until it succeeds */
void sandbox_died(struct sandbox *b);
void sandbox_says(struct sandbox *b); /* its socket is readable during set-up */

struct request *new_request(uint32_t seq, uint32_t wanted, struct err *e);
void drop_request_sandboxes(struct request *r);

/* Starts the process of a sandbox whose frozen layers, uid, limits and mounts are set, on a new
 * writable layer of `disk` bytes. The process answers later, on its socket. On failure the sandbox
 * is gone. */
int sandbox_start(struct sandbox *b, uint64_t disk, struct err *e);
int sandbox_abandon(struct sandbox *b); /* undoes a partly made sandbox; returns -1 */
/* The same for a new process of a sandbox that is asleep. On failure its pidfd tells whether there
 * is a process. */
int sandbox_restart(struct sandbox *b, struct err *e);

hub_message_fn create;
bool pool_full(void); /* counts those that are being made, too */
void pool_refill(void); /* makes one more */

/* ---- range.c ---- */

/* Gives a sandbox ROOT_IDS ids that no other sandbox has, of this hub or another. Without
 * privileges those of /etc/subuid and /etc/subgid, for all. ERR_UNSUPPORTED: there are none. */
int range_take(struct sandbox *b, struct err *e) MUST_USE;
void range_drop(struct sandbox *b); /* the last of a family gives them back */
/* Without privileges, before the process is in its user namespace: starts a process that will map
 * that, this user as 0 and ROOT_IDS - 1 ids of its own behind. -1: the user has none. */
int range_map_start(void);
bool range_map(int go); /* in it; false: it could not be mapped so */

/* ---- sleep.c ---- */

hub_message_fn sandbox_sleep; /* answers, unless it fails */
hub_message_fn sandbox_wake; /* likewise */
void sandbox_slept(
	struct sandbox *b); /* its process, which was killed or was setting itself up, is reaped */
void sandbox_awake(struct sandbox *b); /* its new process is ready */
void wake_failed(struct sandbox *b, const struct err *e); /* its new process could not be set up */

/* ---- facts.c ---- */

/* Returns the facts for these limits, valid as long as some sandbox uses them. NULL with *e. */
struct facts *facts_take(const struct limits *l, struct err *e) MUST_USE;
/* Writes the files if they do not exist yet. This takes longest of all work for the first sandbox
 * with these limits, so do it while the sandbox's process makes its network. */
int facts_write(struct facts *f, struct err *e) MUST_USE;
void facts_drop(struct facts *f); /* NULL-safe */
/* Number of processors that a sandbox with these limits sees; 0: all of the machine's. */
uint32_t facts_cpus(const struct limits *l);
bool facts_limit_cpus(const struct facts *f);
/* Chooses processors for one more sandbox; none: no need to choose. */
void facts_place(const struct facts *f, cpu_set_t *ret);
/* Mounts them in the mount namespace of the calling process, whose root and /proc are on /r. -1
 * with errno. */
int facts_show(const struct facts *f, uint32_t slot) MUST_USE;
/* Mounts them over others, which must stay as long, in a sandbox in which nothing has run yet. */
int facts_show_over(const struct facts *f, int pidfd, struct err *e) MUST_USE;

/* ---- usage.c ---- */

hub_message_fn say_usage;
/* Processor time in the groups of a slot, in microseconds; 0 where it is not counted. */
uint64_t cpu_counted(uint32_t slot);
bool cpu_time(uint32_t slot, struct cpu_time *ret); /* false: it can't be read */
/* How many bytes its memory limit still allows; UINT64_MAX where memory is not counted. */
uint64_t memory_left(const struct sandbox *b);

/* ---- yield.c ---- */

void yield_watch(struct sandbox *b); /* it has become awake */
hub_message_fn sandbox_hurry;
void yield_paused(struct sandbox *b, bool paused); /* before b->paused is set */
void set_yields(struct sandbox *b, bool yields); /* set false before a sandbox is ended */
/* Like cgroup_freeze(), but makes it stop giving way first: otherwise it could take long to freeze
 * beside busy sandboxes. */
int sandbox_freeze(struct sandbox *b, bool frozen, struct err *e) MUST_USE;
int yield_chores(uint64_t now); /* returns the time until the next check, -1: none */

/* ---- socket.c ---- */

hub_message_fn give_socket; /* answers, unless it fails */

/* ---- attach.c ---- */

hub_message_fn sandbox_attach; /* answers, unless it fails */
/* Place of the attached tree among the frozen layers; n_frozen: there is none. */
uint32_t chain_workspace(const struct chain *c);

/* ---- fork.c ---- */

hub_message_fn sandbox_fork;
/* Freezes the writable layer of an idle sandbox and gives it a new one, in place. between: a layer
 * that stands between the two from then on; NULL: none. */
int freeze_layer(struct sandbox *b, struct layer *between, struct err *e);
hub_message_fn sandbox_pause; /* answers, unless it fails */
void job_ended(struct job *j);
bool is_copied(const struct sandbox *b); /* a job reads its files and has frozen it */
bool is_source(const struct sandbox *b); /* a job reads its files */
void forget_source(const struct sandbox *b); /* it ends: jobs must not use it */
void forsake_copies(void); /* stops the jobs that the hub has left, of forks and of writing */
struct job *new_job(struct err *e);
/* Makes the loop call job_ended() when this process, which fork() returned, has ended; -1: the job
 * is gone. */
int job_started(struct job *j, pid_t pid, struct err *e);
void thaw(const struct sandbox *b);

/* ---- write.c ---- */

/* fd is borrowed. Answers when all is written. */
hub_message_fn sandbox_write;
void written(struct job *j, int errnum);

/* ---- net.c ---- */

/* A network namespace with its loopback up; -1: none is ready, so the sandbox makes its own. */
int net_take(void);
bool nets_full(void); /* or they are being made */
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
/* Applies the requests of another hub to a warden that is already set up. */
int warden_set_anew(const struct wm_hello *m, struct err *e);
