#pragma once
/*
 * Snapshots: the files that a sandbox has changed, as an archive (tar with zstd) in a folder of the
 * hub, and as a row of the registry. A snapshot exists when both do: the archive is written under
 * another name, synced and renamed; then the row is written; then the client is told. Remains of a
 * failure in between are removed at the next start. A row whose archive is missing stays, and has
 * its use again with the archive.
 *
 * Processes, memory, mounts, and the environment of single programs are not saved. A restored
 * sandbox is a new one, with its own names, randomness and identity.
 *
 * Callbacks are as in hub/sandbox/sandbox.h: one each, never from inside the starting call. A
 * `struct snapshot *` is borrowed until the loop's next turn.
 */
#include "hub/sandbox/sandbox.h"

struct snapshot;

enum { SNAPSHOT_NAME_MAX = 256, SNAPSHOTS_MAX = 4096 };

struct snapshot_info { /* borrowed until the loop's next turn */
	uint64_t seq; /* increases in order of creation, never reused */
	struct str id, name; /* name: empty where it has none */
	struct str source; /* the sandbox's id; empty: it was imported */
	struct str owner; /* that of the sandbox, or who imported it; empty: nobody */
	struct str template;
	struct str digest; /* SHA-256 of the archive, in hex */
	int64_t created_ms, expires_ms; /* Unix time; 0: never */
	uint64_t bytes, unpacked; /* of the archive; of what is in it */
	struct limits limits; /* of the source */
};

/* Sets the folder, which is created if missing. Call it before hub_sandboxes_adopt(), with a
 * registry. Without it all functions fail with ERR_UNSUPPORTED. */
int hub_sandboxes_keep_snapshots(struct hub_sandboxes *all, const char *folder,
				 struct err *e) MUST_USE;

/* Whether one can be taken: ERR_UNSUPPORTED without a folder, ERR_LIMIT if there are too many. */
int snapshots_check(const struct hub_sandboxes *all, struct err *e) MUST_USE;

typedef void (*snapshot_cb)(void *arg, const struct snapshot *s, const struct err *err);

struct snapshot_spec { /* borrowed for the call */
	/* syntax of a sandbox's id; STR_NONE: generated. ERR_NAME_TAKEN if it is in use. */
	struct str id;
	struct str name; /* at most SNAPSHOT_NAME_MAX bytes of UTF-8 */
	uint64_t ttl_ms; /* deleted so long after; 0: never */
	struct str owner; /* of an import; one that is taken has the sandbox's */
};

/* Saves a running or paused sandbox, which is frozen while its files are read. */
void snapshot_take_start(struct hub_sandbox *l, const struct snapshot_spec *spec,
			 snapshot_cb on_done, void *arg);

/* Fails with ERR_SNAPSHOT_NOT_FOUND. */
int snapshots_unknown(struct str id, struct err *e);
/* NULL with ERR_SNAPSHOT_NOT_FOUND. */
struct snapshot *snapshots_find(struct hub_sandboxes *all, struct str id, struct err *e) MUST_USE;
/* Up to max with a seq above `after`, in order of creation. */
size_t snapshots_list(struct hub_sandboxes *all, uint64_t after, struct snapshot **ret, size_t max);
void snapshot_info(const struct snapshot *s, struct snapshot_info *ret);

/* The template that a restore uses now: the snapshot's, or "sha256:…" where that name no longer
 * means the image of its source. An imported archive may name any. */
enum { SNAPSHOT_IMAGE_MAX = 256 };
void snapshot_image(const struct snapshot *s, char ret[SNAPSHOT_IMAGE_MAX]);

/* Restores and exports in progress continue to their end. */
int snapshot_delete(struct snapshot *s, struct err *e) MUST_USE;

/* Makes n sandboxes with its files, all or none; ids as for a fork. They have no deadlines. */
struct snapshot_restore {
	size_t n; /* 1 to 64 */
	const struct str *ids; /* n of them, or NULL */
	struct str labels; /* as in hub_sandbox_spec */
};
void snapshot_restore_start(struct snapshot *s, const struct snapshot_restore *spec,
			    hub_sandbox_fork_cb on_done, void *arg);

/* Its archive, open for reading. ERR_DATA_MISSING: it is not there, or is another file. */
int snapshot_open(const struct snapshot *s, struct err *e) MUST_USE;

/* Imports an archive that was exported here or elsewhere. Takes over fd and reads it from its
 * position to its end. digest: expected digest of the archive, or STR_NONE. ERR_SNAPSHOT: the
 * archive is damaged or of another kind. */
void snapshot_import_start(struct hub_sandboxes *all, int fd, struct str digest,
			   const struct snapshot_spec *spec, snapshot_cb on_done, void *arg);

/* The changes of a sandbox against its template, by path. truncated: there are more. All is
 * borrowed until the callback returns. */
struct snapshot_change {
	enum diff change;
	enum file_type type;
	struct str path;
};
extern const char *const snapshot_change_names[DIFFS];
enum { SNAPSHOT_CHANGES_MAX = 50000 };
typedef void (*snapshot_diff_cb)(void *arg, const struct snapshot_change *changes, size_t n,
				 bool truncated, const struct err *err);
void snapshot_diff_start(struct hub_sandbox *l, snapshot_diff_cb on_done, void *arg);

/* ---- sandboxes that are kept without running ------------------------------------------------- */

/* Saves its files as a snapshot of its own, then ends it: its state is stopped, or cold with
 * `cold`. hub_sandbox_resume_start() starts it again, as the next generation, with the same id and
 * files but without its processes. Terminating it deletes the files, and so does expiry
 * after ms (0: SNAPSHOT_STOPPED_MS or SNAPSHOT_COLD_MS). */
void hub_sandbox_stop_start(struct hub_sandbox *l, bool cold, uint64_t ms, hub_sandbox_cb on_done,
			    void *arg);

#define SNAPSHOT_STOPPED_MS (30ull * 86400 * 1000)
#define SNAPSHOT_COLD_MS (7ull * 86400 * 1000)
