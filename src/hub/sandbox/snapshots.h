#pragma once
/*
 * Snapshots: the files that a sandbox has changed, kept as an archive (tar with zstd) of their own
 * in a folder of the hub's, and as a row of the registry. A snapshot is there when both are: the
 * archive is written aside, through to the disk, and renamed; then comes the row, and then it is
 * acknowledged. What was cut off before that is removed at the next start, which also forgets rows
 * without an archive.
 *
 * Not kept are processes and memory, mounts, and the environment of single programs. A restored
 * sandbox is a new one: names, randomness and whatever else belongs to one sandbox are its own.
 *
 * All is as in hub/sandbox/life.h: one callback each, never from inside the starting call; a
 * `struct snapshot *` is borrowed until the loop's next turn.
 */
#include "hub/sandbox/life.h"

struct snapshot;

enum { SNAPSHOT_NAME_MAX = 256, SNAPSHOTS_MAX = 4096 };

struct snapshot_info { /* borrowed until the loop's next turn */
	uint64_t seq; /* counts up in order of creation, for ever */
	struct str id, name; /* name: empty where it has none */
	struct str source; /* the sandbox's id; empty: it was imported */
	struct str template;
	struct str digest; /* SHA-256 of the archive, in hex */
	int64_t created_ms, expires_ms; /* Unix time; 0: never */
	uint64_t bytes, unpacked; /* of the archive; of what is in it */
	struct limits limits; /* of the source */
};

/* Keeps snapshots in the folder, which is made if missing; before lives_adopt(), with a registry.
 * Without it all of this fails with ERR_UNSUPPORTED. */
int lives_keep_snapshots(struct lives *all, const char *folder, struct err *e) MUST_USE;

typedef void (*snapshot_cb)(void *arg, const struct snapshot *s, const struct err *err);

struct snapshot_spec { /* borrowed for the call */
	struct str id; /* as a sandbox's; STR_NONE: one is made. ERR_CONFLICT where there is one. */
	struct str name; /* at most SNAPSHOT_NAME_MAX bytes of UTF-8 */
	uint64_t ttl_ms; /* deleted so long after; 0: never */
};

/* Of one that runs or is paused; it stands still while its files are read. */
void snapshot_take_start(struct life *l, const struct snapshot_spec *spec, snapshot_cb on_done,
			 void *arg);

/* NULL with ERR_SNAPSHOT_NOT_FOUND. */
struct snapshot *snapshots_find(struct lives *all, struct str id, struct err *e) MUST_USE;
/* Up to max with a seq above `after`, in order of creation. */
size_t snapshots_list(struct lives *all, uint64_t after, struct snapshot **ret, size_t max);
void snapshot_info(const struct snapshot *s, struct snapshot_info *ret);

/* Those that are being restored or exported are so to their end. */
int snapshot_delete(struct snapshot *s, struct err *e) MUST_USE;

/* n sandboxes with its files, all or none; ids as of a fork. They have no deadlines. */
struct snapshot_restore {
	size_t n; /* 1 to 64 */
	const struct str *ids; /* n of them, or NULL */
};
void snapshot_restore_start(struct snapshot *s, const struct snapshot_restore *spec,
			    life_fork_cb on_done, void *arg);

/* Its archive, open for reading. */
int snapshot_open(const struct snapshot *s, struct err *e) MUST_USE;

/* A new one of an archive that was exported here or elsewhere; reads fd from where it stands to its
 * end, and takes it over. digest: that the archive must have, or STR_NONE. ERR_SNAPSHOT: it is
 * damaged, or none. */
void snapshot_import_start(struct lives *all, int fd, struct str digest,
			   const struct snapshot_spec *spec, snapshot_cb on_done, void *arg);

/* What a sandbox has changed against its template: by path; truncated: there are more, anywhere.
 * All is borrowed until it returns. */
struct snapshot_change {
	enum diff change;
	enum file_type type;
	struct str path;
};
extern const char *const snapshot_change_names[DIFFS];
enum { SNAPSHOT_CHANGES_MAX = 50000 };
typedef void (*snapshot_diff_cb)(void *arg, const struct snapshot_change *changes, size_t n,
				 bool truncated, const struct err *err);
void snapshot_diff_start(struct life *l, snapshot_diff_cb on_done, void *arg);

/* ---- sandboxes that are kept without running ------------------------------------------------- */

/* Its files are kept as a snapshot of its own, then it ends: its state is stopped, or cold with
 * cold. It starts again by life_resume_start(), as the next generation, with the same id and files,
 * without its processes. Terminating it removes what is kept, and so does time
 * (SNAPSHOT_STOPPED_MS, SNAPSHOT_COLD_MS). */
void life_stop_start(struct life *l, bool cold, life_cb on_done, void *arg);

#define SNAPSHOT_STOPPED_MS (30ull * 86400 * 1000)
#define SNAPSHOT_COLD_MS (7ull * 86400 * 1000)
