#pragma once
/*
 * Volumes: directories and files of the host that a sandbox is given.
 *
 * Whoever may name any path of the host has all that the hub's user has. So clients name paths
 * within the roots that the operator allows (`holt serve --allow-volumes`), and write only where
 * the root says rw; without a root there are none. The operator (call_is_operator()) needs no root:
 * `holt run -v` gives the same.
 *
 * Links are followed once, here: below a root the kernel lets none lead out. What that opens has a
 * name without links, and the warden opens that name without following any
 * (box/warden/closed.h). So whoever may write below a root can make a volume fail, but can't
 * lead it elsewhere. What was found is what a fork and a restart of the sandbox have again.
 */
#include "box/host/box.h"
#include "json/document/write.h"

enum { VOLUMES_MAX = 32 };

/* Each gives more. rw-all: also what programs of the host act on (sandbox_mount.all). */
enum volume_mode { VOLUME_RO, VOLUME_RW, VOLUME_RW_ALL, VOLUME_MODES };
extern const char *const volume_mode_names[VOLUME_MODES];

struct volume {
	struct str host, inside; /* absolute paths */
	enum volume_mode mode;
	bool granted; /* within a root; else the operator named it */
};

/* Those of a sandbox, which its forks share. */
struct volumes {
	unsigned refs;
	size_t n;
	struct volume v[];
};
struct volumes *volumes_ref(struct volumes *s); /* NULL-safe */
void volumes_unref(struct volumes *s); /* NULL-safe */
AUTO_DEFINE(volumes_unref, struct volumes)

/* What the operator allows. texts: "DIR", "DIR:ro" or "DIR:rw", borrowed for the call. ERR_INVALID:
 * a DIR is no directory now. Links to it are followed now, and never again. */
struct volume_roots;
struct volume_roots *volume_roots_new(const char *const *texts, size_t n, struct err *e) MUST_USE;
void volume_roots_free(struct volume_roots *r); /* NULL-safe */

/* Finds what is asked for, with its links resolved. roots NULL: there are none. by_operator: the
 * operator asks. ERR_DENIED: outside the roots, or to be written where a root is read-only;
 * ERR_INVALID: not there. The messages name the place inside. */
struct volumes *volumes_find(const struct volume_roots *roots, const struct volume *asked, size_t n,
			     bool by_operator, struct err *e) MUST_USE;

/* For a sandbox that starts again: whether the operator still allows those that were granted.
 * *ret_gone: a bit for each that the host does not have any more, of which that isn't asked. s may
 * be NULL. */
int volumes_check(const struct volume_roots *roots, const struct volumes *s, uint32_t *ret_gone,
		  struct err *e) MUST_USE;

/* For the engine: their number. An empty folder stands for each whose bit is in gone. s may be
 * NULL. */
size_t volumes_mounts(const struct volumes *s, uint32_t gone,
		      struct sandbox_mount ret[VOLUMES_MAX]);

/* Whether one may be written without what programs of the host act on, so that the engine looks for
 * what a sandbox leaves there. s may be NULL. */
bool volumes_written(const struct volumes *s);

/* The member "volumes" of a sandbox's row; nothing where s is NULL. */
void volumes_write(const struct volumes *s, struct json_writer *w);
/* From the text of such a row: *ret NULL where there are none. */
int volumes_read(struct str row, struct volumes **ret, struct err *e) MUST_USE;
