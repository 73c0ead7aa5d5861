#include "agents/store/conversation_store.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "agents/store/internal.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/when.h"

enum {
	OPEN_MAX = 64, /* logs of events that are open, two descriptors each */
	TRIES = 16, /* ids that are tried for a new conversation */
};

static const char trash_name[] = "trash", new_name[] = ".new";

struct conversation_folder {
	struct conversation_store *of;
	char id[CONVERSATION_ID + 1];
	int folder;
	struct record record;
	struct events *events; /* NULL: not open */
	uint64_t used; /* of_used when they were asked for last */
};

struct conversation_store {
	int dir, lock, trash;
	struct conversation_folder **all; /* by id */
	size_t n, cap, open;
	uint64_t used;
};

bool conversation_id_valid(struct str id)
{
	if (id.n != CONVERSATION_ID)
		return false;
	for (size_t i = 0; i < id.n; i++) {
		bool digit = id.p[i] >= '0' && id.p[i] <= '9';

		if (i == 8 || i == 15 ? id.p[i] != '-'
				      : !digit && (i < 16 || id.p[i] < 'a' || id.p[i] > 'f'))
			return false;
	}
	return true;
}

/* ---- the list ------------------------------------------------------------------------------- */

/* Where the id is, or would be. */
static size_t list_place(const struct conversation_store *c, struct str id)
{
	size_t low = 0, high = c->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (str_cmp(str_of(c->all[middle]->id), id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct conversation_folder *conversation_store_find(const struct conversation_store *c,
						    struct str id)
{
	size_t at = list_place(c, id);

	return at < c->n && str_eq(str_of(c->all[at]->id), id) ? c->all[at] : NULL;
}

static int list_reserve(struct conversation_store *c, struct err *e)
{
	struct conversation_folder **more;

	if (c->n == CONVERSATIONS_MAX)
		return err_set(e, ERR_LIMIT, "there are %d conversations, as many as are possible",
			       CONVERSATIONS_MAX);
	if (c->n < c->cap)
		return 0;
	more = reallocarray(c->all, c->cap + 64, sizeof(struct conversation_folder *));
	if (!more)
		return err_set(e, ERR_LIMIT, "out of memory");
	c->all = more;
	c->cap += 64;
	return 0;
}

/* There is room: list_reserve(). */
static void list_add(struct conversation_store *c, struct conversation_folder *v)
{
	size_t at = list_place(c, str_of(v->id));

	memmove(c->all + at + 1, c->all + at, (c->n - at) * sizeof(*c->all));
	c->all[at] = v;
	c->n++;
}

static void list_drop(struct conversation_store *c, const struct conversation_folder *v)
{
	size_t at = list_place(c, str_of(v->id));

	c->n--;
	memmove(c->all + at, c->all + at + 1, (c->n - at) * sizeof(*c->all));
}

size_t conversation_store_count(const struct conversation_store *c)
{
	return c->n;
}

struct conversation_folder *conversation_store_at(const struct conversation_store *c, size_t i)
{
	return i < c->n ? c->all[i] : NULL;
}

/* ---- one ------------------------------------------------------------------------------------ */

static void conversation_folder_free(struct conversation_folder *v)
{
	if (!v)
		return;
	if (v->events)
		v->of->open--;
	events_close(v->events);
	record_fini(&v->record);
	if (v->folder >= 0)
		close(v->folder);
	free(v);
}
AUTO_DEFINE(conversation_folder_free, struct conversation_folder)

static struct conversation_folder *conversation_folder_alloc(struct conversation_store *c,
							     struct str id, struct err *e)
{
	struct conversation_folder *v = calloc(1, sizeof(*v));

	if (!v)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	v->of = c;
	v->folder = -1;
	memcpy(v->id, id.p, CONVERSATION_ID);
	return v;
}

/* folder: where it stands. */
static struct conversation_folder *conversation_folder_load(struct conversation_store *c,
							    int folder, struct str id,
							    struct err *e)
{
	AUTO(conversation_folder_free)
	struct conversation_folder *v = conversation_folder_alloc(c, id, e);

	if (!v)
		return NULL;
	v->folder = openat(folder, v->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (v->folder < 0)
		return err_sys(e, errno, "open the folder"), NULL;
	if (record_decode(&v->record, document_read(v->folder, RECORD_NAME, e), e) < 0)
		return NULL;
	if (!str_eq(v->record.r->session_id, id)) {
		err_set(e, ERR_STORE_CORRUPT, RECORD_NAME " is that of another conversation");
		return NULL;
	}
	return take_ptr(v);
}

const char *conversation_folder_id(const struct conversation_folder *v)
{
	return v->id;
}

const struct conversation_record *conversation_folder_record(const struct conversation_folder *v)
{
	return v->record.r;
}

int conversation_folder_fd(const struct conversation_folder *v)
{
	return v->folder;
}

int conversation_folder_change(struct conversation_folder *v, const struct conversation_record *r,
			       struct err *e)
{
	struct conversation_record changed = *r;
	char now[WHEN_MAX];

	when_text(now, clock_unix_ms());
	changed.session_id = v->record.r->session_id;
	changed.owner = v->record.r->owner;
	changed.created_at = v->record.r->created_at;
	changed.updated_at = str_of(now);
	return record_write(v->folder, &changed, &v->record, e);
}

/* Closes the log that was used longest ago, if there are too many. */
static void events_make_room(struct conversation_store *c)
{
	struct conversation_folder *oldest = NULL;

	if (c->open < OPEN_MAX)
		return;
	for (size_t i = 0; i < c->n; i++) {
		if (c->all[i]->events && (!oldest || c->all[i]->used < oldest->used))
			oldest = c->all[i];
	}
	if (oldest) {
		events_close(take_ptr(oldest->events));
		c->open--;
	}
}

struct events *conversation_folder_events(struct conversation_folder *v, struct err *e)
{
	v->used = ++v->of->used;
	if (v->events)
		return v->events;
	events_make_room(v->of);
	v->events = events_open(v->folder, NULL, e);
	if (v->events)
		v->of->open++;
	return v->events;
}

/* ---- making and deleting -------------------------------------------------------------------- */

static void id_new(char id[CONVERSATION_ID + 1])
{
	time_t now = time(NULL);
	struct tm tm;
	uint32_t random;

	while (getrandom(&random, sizeof(random), 0) != sizeof(random))
		;
	strftime(id, 17, "%Y%m%d-%H%M%S-", gmtime_r(&now, &tm));
	snprintf(id + 16, 9, "%08x", random);
}

/* Its name has to reach the disk, or it is taken back. */
static int folder_made(struct conversation_store *c, struct conversation_folder *v, struct err *e)
{
	if (fsync(c->dir) == 0)
		return 0;
	err_sys(e, errno, "make a folder");
	if (renameat2(c->dir, v->id, c->dir, new_name, RENAME_NOREPLACE) < 0)
		err_unsure(e);
	return -1;
}

/* The folder is made aside, so that what has a conversation's name has its record, too. */
static int folder_make(struct conversation_store *c, struct conversation_folder *v,
		       struct conversation_record *r, struct err *e)
{
	if ((unlinkat(c->dir, ".new/" RECORD_NAME, 0) < 0 && errno != ENOENT) ||
	    (mkdirat(c->dir, new_name, 0700) < 0 && errno != EEXIST))
		return err_sys(e, errno, "make a folder");
	v->folder = openat(c->dir, new_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (v->folder < 0)
		return err_sys(e, errno, "make a folder");
	for (int i = 0; i < TRIES; i++) {
		id_new(v->id);
		r->session_id = str_of(v->id);
		if (record_write(v->folder, r, &v->record, e) < 0)
			return -1;
		if (renameat2(c->dir, new_name, c->dir, v->id, RENAME_NOREPLACE) == 0)
			return folder_made(c, v, e);
		if (errno != EEXIST)
			return err_sys(e, errno, "make a folder");
	}
	return err_set(e, ERR_CONFLICT, "no id is free");
}

struct conversation_folder *conversation_store_add(struct conversation_store *c,
						   const struct conversation_record *from,
						   struct err *e)
{
	struct conversation_record r = *from;
	AUTO(conversation_folder_free) struct conversation_folder *v = NULL;
	char id[CONVERSATION_ID + 1], now[WHEN_MAX];

	if (r.parent_session_id.n && !conversation_store_find(c, r.parent_session_id)) {
		err_set(e, ERR_CONVERSATION_NOT_FOUND,
			"there is no conversation %.40s to be the parent", r.parent_session_id.p);
		return NULL;
	}
	id_new(id);
	v = list_reserve(c, e) < 0 ? NULL : conversation_folder_alloc(c, str_of(id), e);
	if (!v)
		return NULL;
	when_text(now, clock_unix_ms());
	r.created_at = r.updated_at = str_of(now);
	if (folder_make(c, v, &r, e) < 0)
		return NULL;
	list_add(c, v);
	return take_ptr(v);
}

/* Moves its folder, also on the disk. -1: it is where it was; 1, ERR_UNSURE: it may be. */
static int folder_move(const struct conversation_folder *v, int from, int to, const char *what,
		       struct err *e)
{
	if (renameat2(from, v->id, to, v->id, RENAME_NOREPLACE) < 0)
		return err_sys(e, errno, "%s", what);
	if (fsync(to) == 0 && fsync(from) == 0)
		return 0;
	err_sys(e, errno, "%s", what);
	if (renameat2(to, v->id, from, v->id, RENAME_NOREPLACE) == 0)
		return -1;
	err_unsure(e);
	return 1;
}

int conversation_folder_delete(struct conversation_folder *v, struct err *e)
{
	static const char what[] = "move the conversation to the trash";
	struct conversation_store *c = v->of;
	int rc;

	for (size_t i = 0; i < c->n; i++) {
		if (str_is(c->all[i]->record.r->parent_session_id, v->id))
			return err_set(e, ERR_CONFLICT, "conversation %s is the child of this one",
				       c->all[i]->id);
	}
	/* How long it has been in the trash is told by the folder's time. */
	if (futimens(v->folder, NULL) < 0)
		return err_sys(e, errno, "%s", what);
	rc = folder_move(v, c->dir, c->trash, what, e);
	if (rc < 0)
		return -1;
	list_drop(c, v);
	conversation_folder_free(v);
	return rc;
}

/* The owner of a broken one is not known: it is nobody's. */
static struct conversation_folder *trash_find(struct conversation_store *c, struct str id,
					      struct str owner, struct err *e)
{
	AUTO(conversation_folder_free) struct conversation_folder *v = NULL;
	bool valid = conversation_id_valid(id);

	if (valid)
		v = conversation_folder_load(c, c->trash, id, e);
	if (v && (!owner.n || str_eq(v->record.r->owner, owner)))
		return take_ptr(v);
	if (!valid || owner.n || e->code == ERR_PATH_NOT_FOUND)
		err_set(e, ERR_CONVERSATION_NOT_FOUND, "it is not in the trash");
	return NULL;
}

char *conversation_store_trashed_owner(struct conversation_store *c, struct str id)
{
	struct err e = ERR_INIT;
	AUTO(conversation_folder_free)
	struct conversation_folder *v = trash_find(c, id, STR_NONE, &e);

	return v ? strndup(v->record.r->owner.p, v->record.r->owner.n) : NULL;
}

struct conversation_folder *conversation_store_take_back(struct conversation_store *c,
							 struct str id, struct str owner,
							 struct err *e)
{
	AUTO(conversation_folder_free) struct conversation_folder *v = NULL;

	if (list_reserve(c, e) < 0)
		return NULL;
	v = trash_find(c, id, owner, e);
	if (!v || folder_move(v, c->trash, c->dir, "restore the conversation", e) != 0)
		return NULL;
	list_add(c, v);
	return take_ptr(v);
}

/* ---- all ------------------------------------------------------------------------------------ */

/* Removes a folder of files, and of folders of files. */
static int folder_remove(int parent, const char *name, int deeper)
{
	autofolder struct folder f = folder_at(parent, name);
	int result = 0, more = 0;

	while (result == 0 && (more = folder_next(&f)) > 0) {
		const char *at = f.entry->d_name;

		if (unlinkat(folder_fd(&f), at, 0) < 0)
			result = deeper > 0 ? folder_remove(folder_fd(&f), at, deeper - 1) : -1;
	}
	return result < 0 || more < 0 ? -1 : unlinkat(parent, name, AT_REMOVEDIR);
}

int conversation_store_empty_trash(struct conversation_store *c, int64_t seconds, struct err *e)
{
	autofolder struct folder f = folder_at(c->trash, ".");
	const time_t until = time(NULL) - seconds;
	struct stat st;
	int n = 0, more = 0;

	while (n >= 0 && (more = folder_next(&f)) > 0) {
		if (!conversation_id_valid(str_of(f.entry->d_name)) ||
		    fstatat(c->trash, f.entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    st.st_mtim.tv_sec > until)
			continue;
		n = folder_remove(c->trash, f.entry->d_name, 1) == 0
			  ? n + 1
			  : err_sys(e, errno, "empty the trash of conversations");
	}
	return more < 0 ? err_sys(e, f.errnum, "list the conversations") : n;
}

static int conversation_store_load(struct conversation_store *c, conversation_lost_fn on_lost,
				   void *data, struct err *e)
{
	autofolder struct folder f = folder_at(c->dir, ".");
	struct err why;
	int more;

	while ((more = folder_next(&f)) > 0) {
		struct conversation_folder *v;

		if (!conversation_id_valid(str_of(f.entry->d_name)))
			continue;
		v = list_reserve(c, &why) < 0
			  ? NULL
			  : conversation_folder_load(c, c->dir, str_of(f.entry->d_name), &why);
		/* one that only can't be read now would be missing until the next start */
		if (!v && (why.code == ERR_IO || why.code == ERR_LIMIT))
			v = conversation_folder_load(c, c->dir, str_of(f.entry->d_name), &why);
		if (v)
			list_add(c, v);
		else
			on_lost(data, f.entry->d_name, &why);
	}
	return more < 0 ? err_sys(e, f.errnum, "list the conversations") : 0;
}

struct conversation_store *conversation_store_open(const char *path, conversation_lost_fn on_lost,
						   void *data, struct err *e)
{
	AUTO(conversation_store_close) struct conversation_store *c = calloc(1, sizeof(*c));
	struct stat st;

	if (!c)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	c->dir = c->lock = c->trash = -1;
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		c->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->dir < 0 || fstat(c->dir, &st) < 0)
		return err_sys(e, errno, "open the folder of conversations"), NULL;
	if (st.st_uid != geteuid() || (st.st_mode & 077)) {
		err_set(e, ERR_DENIED, "the folder of conversations is not this user's alone");
		return NULL;
	}
	c->lock = openat(c->dir, ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (c->lock >= 0 && fd_lock(c->lock) < 0 && errno == EWOULDBLOCK)
		return err_set(e, ERR_STORE_LOCKED, "another process has the conversations"), NULL;
	if (mkdirat(c->dir, trash_name, 0700) == 0 || errno == EEXIST)
		c->trash = openat(c->dir, trash_name,
				  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (c->lock < 0 || c->trash < 0)
		return err_sys(e, errno, "open the folder of conversations"), NULL;
	return conversation_store_load(c, on_lost, data, e) < 0 ? NULL : take_ptr(c);
}

void conversation_store_close(struct conversation_store *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		conversation_folder_free(c->all[i]);
	free(c->all);
	if (c->trash >= 0)
		close(c->trash);
	if (c->lock >= 0)
		close(c->lock);
	if (c->dir >= 0)
		close(c->dir);
	free(c);
}
