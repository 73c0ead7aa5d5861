#pragma once
/*
 * Between the files of snapshots:
 *
 *	snapshots.c		the folder, the rows and the table of them; what time ends
 *	snapshot_pack.c		holt-pack as a process of the hub's
 *	snapshot_take.c		a sandbox's files into an archive
 *	snapshot_restore.c	an archive into sandboxes
 *	snapshot_import.c	an archive of elsewhere
 *	snapshot_diff.c		what a sandbox has changed
 *	keep.c		sandboxes that are kept without running; what retention says
 */
#include "box/pack/pack.h"
#include "hub/sandbox/internal.h"
#include "hub/sandbox/snapshots.h"
#include "json/field/field.h"

struct snapshot {
	struct lives *all;
	struct snapshot *older, *newer; /* in order of creation */
	uint64_t seq, of; /* of: the sandbox that it is kept for; 0: it is a client's */
	char id[LIFE_ID_MAX + 1], name[SNAPSHOT_NAME_MAX + 1], source[LIFE_ID_MAX + 1];
	char template[256], base[SANDBOX_BASE_MAX], digest[HASH_HEX + 1];
	int64_t created_ms, expires_ms;
	uint64_t bytes, unpacked;
	struct limits limits;
};

struct snapshots {
	struct lives *all;
	int dir, new; /* the folder; what is not whole yet */
	struct snapshot *oldest, *newest;
	size_t n;
	uint64_t last_seq;
	unsigned taking; /* that will be there */
	uv_timer_t *reaper;
	struct packing *packs; /* that run */
	unsigned works; /* of the loop's pool, that are to end before all of this does */
};

/* What an archive says of itself. */
struct snapshot_meta {
	uint32_t version;
	struct str template, base;
	uint64_t memory, disk;
	uint32_t pids, cpu_milli, open_files;
	bool has_open_files;
};
extern const struct field_table snapshot_meta_table;

/* ---- snapshots.c --------------------------------------------------------------------------- */

/* ERR_UNSUPPORTED where none are kept, ERR_LIMIT where there are too many. */
int snapshots_check(const struct lives *all, struct err *e) MUST_USE;
/* A new one that nobody knows yet, as spec says; owned. */
struct snapshot *snapshot_new(struct lives *all, const struct snapshot_spec *spec,
			      struct err *e) MUST_USE;
void snapshot_free(struct snapshot *s); /* of one that nobody knows; NULL-safe */
AUTO_DEFINE(snapshot_free, struct snapshot)
/* The file that its archive is written to. */
int snapshot_create_file(const struct snapshot *s, struct err *e) MUST_USE;
void snapshot_drop_file(const struct snapshot *s); /* of one that did not come to be */
/* The archive is whole and on the disk: has it known, then calls on_done; takes s, which it frees where that
 * fails. spec: JSON, or STR_NONE: as that of the sandbox of row spec_of. */
void snapshot_publish(struct snapshot *s, uint64_t spec_of, struct str spec, snapshot_cb on_done,
		      void *arg);
/* The one that is kept for a sandbox; NULL: none. */
struct snapshot *snapshot_kept(const struct lives *all, const struct life *l);
/* Removes that, too. */
void snapshot_drop_kept(struct life *l);
/* JSON of what its source had besides limits; owned. */
char *snapshot_spec_text(const struct snapshot *s, struct err *e) MUST_USE;
/* The hub ends: what runs for snapshots ends soon. */
void snapshots_stop(struct lives *all);
bool snapshots_busy(const struct lives *all);
void snapshots_free(struct snapshots *s); /* NULL-safe */

/* ---- snapshot_pack.c ----------------------------------------------------------------------- */

/* a is good where err is NULL. */
typedef void (*pack_cb)(void *arg, const struct pack_answer *a, const struct err *err);

struct pack_spec {
	const char *mode; /* of holt-pack */
	uint64_t max;
	const char *with; /* its last argument, or NULL */
	int in, out; /* borrowed; out -1: nowhere */
};

struct packing;
struct packing *pack_start(struct lives *all, const struct pack_spec *spec, pack_cb on_done,
			   void *arg, struct err *e) MUST_USE;
void packs_kill(struct lives *all);

/* How much there may be in a snapshot of a sandbox with this disk: files, and what says of them. */
uint64_t snapshot_max(const struct limits *l);

/* ---- snapshot_take.c ----------------------------------------------------------------------- */

/* The same as snapshot_take_start() for a sandbox whose life sees to it that it may be; of: it is kept for that. */
void snapshot_take(struct life *l, const struct snapshot_spec *spec, bool kept, snapshot_cb on_done,
		   void *arg);

/* ---- snapshot_restore.c -------------------------------------------------------------------- */

/* A stopped or cold one, from what is kept for it. */
void life_start_again(struct life *l, life_cb on_done, void *arg);

/* ---- keep.c --------------------------------------------------------------------------- */

/* Carries out a retention other than RETAIN_DESTROY: what it says is kept, then l has ended for that reason.
 * on_done's err: nothing is, and it goes on. */
void life_keep_start(struct life *l, enum life_retention how, const struct err *why,
		     life_cb on_done, void *arg);
