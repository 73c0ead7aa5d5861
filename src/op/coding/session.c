#include "op/coding/session.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "call/guard.h"
#include "coding/path.h"
#include "config/toolchains.h"
#include "guard/policy/policy.h"
#include "hub/workspace/room.h"
#include "hub/workspace/workspaces.h"
#include "op/budget.h"

enum {
	/* files of a conversation; the one that was used longest ago gives way */
	KNOWN_MAX = 4096,
	/* marks of a conversation; those of the file that was used longest ago give way */
	MARKS_MAX = 128 << 10,
};

struct workspace {
	char *name, *dir; /* owned */
	enum volume_mode mode;
};

/* Where the calls of a principal in a workspace work, or those of a session: those of the same
 * profiles. */
struct coding_place {
	struct lazy_sandbox lazy; /* first: the two are cast */
	struct coding_place *next;
	struct coding *all;
	const struct workspace *workspace; /* NULL: the place of a session */
	const void *session;
	unsigned scope;
	struct volume volumes[VOLUMES_MAX]; /* the folder, and toolchains */
	struct arena *arena; /* of those; NULL: none */
	struct stat folder; /* of the workspace, when the sandbox was made */
	struct field_pair label;
	bool forgotten; /* while it is made */
	struct coding_note *note;
};

struct known {
	char *path; /* owned */
	unsigned scope;
	uint64_t used;
	char digest[HASH_HEX + 1];
	struct marks marks;
	uint64_t seen; /* lines from the first on that were shown */
	bool whole, lossy; /* all were shown; some not as they are */
};

struct coding_session {
	struct coding_session *next;
	char owner[OWNER_MAX + 1];
	const void *session;
	unsigned refs;
	struct known *known;
	size_t n, room;
	uint64_t uses;
	struct coding_note *note;
};

/* In the call's arena. */
struct coding_turn {
	struct coding_turn *next;
	struct coding_work *work;
	struct str path; /* of TURN_FILE */
	enum turn_kind { TURN_FILE, TURN_READS_ALL, TURN_WRITES_ALL } kind;
	enum {
		TURN_WAITS, /* for another by the same path, or that has all files */
		TURN_HAS,
		TURN_BEHIND, /* it has the path, and another has the same file by another path */
		TURN_READY, /* that has ended */
	} state;
	const struct coding_turn *behind;
	uint64_t dev, ino; /* 0: not known yet */
	bool told; /* by the sandbox */
	void (*then)(struct coding_work *w);
};

struct coding {
	char *snapshots; /* owned; NULL: they are not kept */
	struct workspace *workspaces;
	size_t n_workspaces;
	unsigned scopes; /* that were given */
	struct coding_place *places;
	struct coding_session *conversations;
	struct coding_turn *turns; /* the oldest first */
};

/* ---- workspaces ---------------------------------------------------------------------------- */

static bool is_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!memchr("._-", s.p[i], 3) && !(s.p[i] >= '0' && s.p[i] <= '9') &&
		    !(s.p[i] >= 'A' && s.p[i] <= 'Z') && !(s.p[i] >= 'a' && s.p[i] <= 'z'))
			return false;
	}
	return s.n > 0 && s.n <= CODING_NAME_MAX;
}

static const struct workspace *find_workspace(const struct coding *k, struct str name)
{
	for (size_t i = 0; i < k->n_workspaces; i++) {
		if (str_is(name, k->workspaces[i].name))
			return &k->workspaces[i];
	}
	return NULL;
}

/* "[NAME=]DIR[:rw-all]" */
static int read_workspace(struct coding *k, const char *text, bool readonly, struct err *e)
{
	struct workspace *w = &k->workspaces[k->n_workspaces];
	const char *equals = strchr(text, '=');
	struct str name = { text, equals ? (size_t)(equals - text) : 0 };
	struct str dir = str_of(equals && is_name(name) ? equals + 1 : text);
	bool named = dir.p != text, all = str_ends(dir, ":rw-all");
	char path[PATH_MAX], real[PATH_MAX];
	struct stat st;

	if (all || str_ends(dir, ":rw"))
		dir.n -= all ? strlen(":rw-all") : strlen(":rw");
	snprintf(path, sizeof(path), "%.*s", STR_ARG(dir));
	if (!realpath(path, real) || stat(real, &st) < 0)
		return err_set(e, ERR_INVALID, "--workspace %.150s: %s", text, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_INVALID, "--workspace %.150s: not a directory", text);
	if (!named)
		name = str_of(strrchr(real, '/') + 1);
	if (!is_name(name))
		return err_set(e, ERR_INVALID,
			       "--workspace %.150s: give it a name of letters, digits and ._-, as "
			       "NAME=DIR",
			       text);
	w->name = mem_dup(name.p, name.n);
	w->dir = strdup(real);
	w->mode = readonly ? VOLUME_RO : all ? VOLUME_RW_ALL : VOLUME_RW;
	if (find_workspace(k, name))
		return err_set(e, ERR_INVALID,
			       "--workspace: two are called %.64s; name them, as NAME=DIR",
			       w->name);
	k->n_workspaces++;
	return w->name && w->dir ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

struct coding *coding_new(const struct coding_options *o, struct err *e)
{
	AUTO(coding_free) struct coding *k = calloc(1, sizeof(*k));

	if (o->n_workspaces > CODING_WORKSPACES_MAX) {
		err_set(e, ERR_INVALID, "--workspace: at most %d", CODING_WORKSPACES_MAX);
		return NULL;
	}
	if (k)
		k->workspaces = calloc(o->n_workspaces + 1, sizeof(*k->workspaces));
	if (k && o->snapshots)
		k->snapshots = strdup(o->snapshots);
	if (!k || !k->workspaces || (o->snapshots && !k->snapshots))
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	for (size_t i = 0; i < o->n_workspaces; i++) {
		if (read_workspace(k, o->workspaces[i], o->readonly, e) < 0)
			return NULL;
	}
	k->scopes = (unsigned)k->n_workspaces;
	return take_ptr(k);
}

static void place_free(struct coding_place *p)
{
	if (p->note)
		p->note->free(p->note);
	lazy_sandbox_fini(&p->lazy);
	arena_free(p->arena);
	free(p);
}

static void conversation_unref(struct coding_session *t)
{
	if (!t || --t->refs > 0)
		return;
	for (size_t i = 0; i < t->n; i++) {
		free(t->known[i].path);
		marks_fini(&t->known[i].marks);
	}
	if (t->note)
		t->note->free(t->note);
	free(t->known);
	free(t);
}

void coding_free(struct coding *k)
{
	if (!k)
		return;
	while (k->places) {
		struct coding_place *p = k->places;

		k->places = p->next;
		place_free(p);
	}
	while (k->conversations) {
		struct coding_session *t = k->conversations;

		k->conversations = t->next;
		conversation_unref(t);
	}
	/* One that could not be read may have one of the two. */
	for (size_t i = 0; k->workspaces && i <= k->n_workspaces; i++) {
		free(k->workspaces[i].name);
		free(k->workspaces[i].dir);
	}
	free(k->workspaces);
	free(k->snapshots);
	free(k);
}

const char *coding_snapshots(const struct coding_work *w)
{
	return w->all->snapshots;
}

struct room coding_room(const struct coding_work *w)
{
	const struct workspaces *all = call_workspaces(w->call);

	return (struct room){ .workspaces = all ? workspaces_folder(all) : NULL,
			      .shots = w->all->snapshots,
			      .max = budget_objects(w->call) };
}

bool coding_has_workspaces(const struct coding *k)
{
	return k && k->n_workspaces > 0;
}

/* *ret NULL: there are none. */
static int choose_workspace(const struct coding *k, struct str name, const struct workspace **ret,
			    struct err *e)
{
	char names[160] = "";

	*ret = name.p ? find_workspace(k, name) : k->n_workspaces == 1 ? k->workspaces : NULL;
	if (*ret || (!name.p && k->n_workspaces == 0))
		return 0;
	for (size_t i = 0; i < k->n_workspaces; i++) {
		size_t n = strlen(names);

		snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "",
			 k->workspaces[i].name);
	}
	if (k->n_workspaces == 0)
		return err_set(e, ERR_INVALID,
			       "workspace: there is none with a name here; leave it out");
	if (!name.p)
		return err_set(e, ERR_INVALID, "workspace: name one of these: %s", names);
	return err_set(e, ERR_INVALID, "workspace: none is called \"%.*s\"; there are: %s",
		       STR_CUT(name, CODING_NAME_MAX), names);
}

/* ---- conversations ------------------------------------------------------------------------- */

static struct coding_session *conversation_of(struct coding *k, const struct call *c, struct err *e)
{
	struct str owner = call_owner(c);
	struct coding_session *t = k->conversations;

	while (t && (t->session != call_session(c) || !str_is(owner, t->owner)))
		t = t->next;
	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	snprintf(t->owner, sizeof(t->owner), "%.*s", STR_ARG(owner));
	t->session = call_session(c);
	t->refs = 1;
	t->next = k->conversations;
	k->conversations = t;
	return t;
}

struct coding_note **coding_note(struct coding_work *w)
{
	return &w->conversation->note;
}

struct coding_note **coding_place_note(struct coding_work *w)
{
	struct coding_place *p = w->all->places;

	while (p && strcmp(p->lazy.id, w->wait.id) != 0)
		p = p->next;
	return p ? &p->note : NULL;
}

static struct known *known_find(const struct coding_work *w, struct str path)
{
	struct coding_session *t = w->conversation;

	for (size_t i = 0; i < t->n; i++) {
		if (t->known[i].scope == w->scope && str_is(path, t->known[i].path))
			return &t->known[i];
	}
	return NULL;
}

const char *coding_known(const struct coding_work *w, struct str path)
{
	struct known *known = known_find(w, path);

	if (!known)
		return NULL;
	known->used = ++w->conversation->uses;
	return known->digest;
}

static int by_path(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

int coding_known_all(struct coding_work *w, struct str **ret, size_t *ret_n, struct err *e)
{
	const struct coding_session *t = w->conversation;
	struct arena *a = call_arena(w->call);
	struct str *all = arena_array(a, t->n + 1, sizeof(*all), e);
	size_t n = 0;

	for (size_t i = 0; all && i < t->n; i++) {
		struct str path = str_of(t->known[i].path);
		const char *copy;

		if (t->known[i].scope != w->scope || !str_starts(path, CODING_ROOT "/"))
			continue;
		path.p += strlen(CODING_ROOT "/");
		path.n -= strlen(CODING_ROOT "/");
		copy = arena_dup(a, path, e);
		if (!copy)
			return -1;
		all[n++] = (struct str){ copy, path.n };
	}
	if (!all)
		return -1;
	qsort(all, n, sizeof(*all), by_path);
	*ret = all;
	*ret_n = n;
	return 0;
}

/* Room for one more, in place of the one that was used longest ago where there are too many. */
static struct known *known_add(struct coding_session *t)
{
	struct known *oldest = t->known;

	if (t->n < t->room)
		return &t->known[t->n++];
	if (t->room < KNOWN_MAX) {
		size_t room = t->room ? 2 * t->room : 16;
		struct known *grown = realloc(t->known, room * sizeof(*grown));

		if (!grown)
			return NULL;
		t->known = grown;
		t->room = room;
		return &t->known[t->n++];
	}
	for (size_t i = 1; i < t->n; i++) {
		if (t->known[i].used < oldest->used)
			oldest = &t->known[i];
	}
	free(oldest->path);
	marks_fini(&oldest->marks);
	return oldest;
}

static void known_bound_marks(struct coding_session *t, const struct known *newest)
{
	for (;;) {
		struct known *oldest = NULL;
		size_t n = 0;

		for (size_t i = 0; i < t->n; i++) {
			struct known *k = &t->known[i];

			n += k->marks.n;
			if (k->marks.n && k != newest && (!oldest || k->used < oldest->used))
				oldest = k;
		}
		if (n <= MARKS_MAX || !oldest)
			return;
		marks_fini(&oldest->marks);
	}
}

struct marks *coding_marks(const struct coding_work *w, struct str path)
{
	struct known *known = known_find(w, path);

	return known ? &known->marks : NULL;
}

void coding_know(struct coding_work *w, struct str path, const char *digest, struct marks *m)
{
	struct known *known = known_find(w, path);
	char *copy = known ? NULL : mem_dup(path.p, path.n);

	if (copy)
		known = known_add(w->conversation);
	if (!known) {
		free(copy);
		return;
	}
	if (copy)
		*known = (struct known){ .path = copy, .scope = w->scope };
	known->used = ++w->conversation->uses;
	snprintf(known->digest, sizeof(known->digest), "%s", digest);
	marks_fini(&known->marks);
	known->marks = *m;
	*m = (struct marks){ 0 };
	known_bound_marks(w->conversation, known);
}

void coding_saw(struct coding_work *w, struct str path, const struct coding_sight *s)
{
	struct known *known = known_find(w, path);

	if (!known)
		return;
	if (s->anew)
		known->seen = known->whole = known->lossy = 0;
	if (s->first <= known->seen + 1 && s->first + s->lines > known->seen + 1)
		known->seen = s->first + s->lines - 1;
	known->whole |= known->seen >= s->total;
	known->lossy |= s->lossy;
}

int coding_saw_whole(const struct coding_work *w, struct str path, struct err *e)
{
	const struct known *known = known_find(w, path);

	if (!known || (known->whole && !known->lossy))
		return 0;
	if (known->lossy)
		return err_set(e, ERR_UNREAD,
			       "Read can't show it as it is, since it has bytes that are no UTF-8, "
			       "or a very long line. Edit keeps those; Write would not");
	return err_set(e, ERR_UNREAD,
		       "this conversation has read its lines up to %" PRIu64 " alone, and Write "
		       "replaces all of it; Edit needs no more than was read",
		       known->seen);
}

/* ---- turns --------------------------------------------------------------------------------- */

static bool turn_excludes(const struct coding_turn *a, const struct coding_turn *b)
{
	bool same = a->work->scope == b->work->scope;

	if (a->kind == TURN_FILE && b->kind == TURN_FILE)
		return same && str_eq(a->path, b->path);
	if (a->kind != TURN_FILE && b->kind != TURN_FILE)
		return true;
	return same && (a->kind == TURN_WRITES_ALL || b->kind == TURN_WRITES_ALL);
}

/* One that works on all files is not overtaken, since there may always be another writer. */
static bool turn_is_free(const struct coding_turn *t)
{
	const struct coding_turn *o = t->work->all->turns;
	bool before = true;

	for (; o; o = o->next) {
		if (o == t)
			before = false;
		else if ((o->state != TURN_WAITS || (before && (o->kind || t->kind))) &&
			 turn_excludes(o, t))
			return false;
	}
	return true;
}

static void turn_begin(struct coding_turn *t)
{
	t->state = TURN_HAS;
	call_on_cancel(t->work->call, NULL, NULL);
	t->then(t->work);
}

static void turn_on_cancel(void *data)
{
	struct coding_work *w = data;
	struct err e;

	err_set(&e, ERR_CANCELLED, "the call was cancelled before it wrote anything");
	coding_fail(w, &e);
}

/* Begins those that nothing stands before any more. One may end at once, and others with it. */
static void turn_next(struct coding *k)
{
	struct coding_turn *t = k->turns;

	while (t) {
		if (t->state == TURN_READY || (t->state == TURN_WAITS && turn_is_free(t))) {
			turn_begin(t);
			t = k->turns;
		} else {
			t = t->next;
		}
	}
}

static void turn_end(struct coding_work *w)
{
	struct coding_turn **at = &w->all->turns;

	while (*at != w->turn)
		at = &(*at)->next;
	*at = w->turn->next;
	for (struct coding_turn *t = w->all->turns; t; t = t->next) {
		if (t->state == TURN_BEHIND && t->behind == w->turn)
			t->state = TURN_READY;
	}
	w->turn = NULL;
}

static void turn_wait(struct coding_work *w, enum turn_kind kind, struct str path,
		      void (*then)(struct coding_work *w))
{
	struct coding_turn **at = &w->all->turns;
	struct err e = ERR_INIT;
	struct coding_turn *t = arena_alloc(call_arena(w->call), sizeof(*t), &e);

	if (!t) {
		coding_fail(w, &e);
		return;
	}
	*t = (struct coding_turn){ .work = w, .kind = kind, .path = path, .then = then };
	w->turn = t;
	while (*at)
		at = &(*at)->next;
	*at = t;
	if (turn_is_free(t))
		turn_begin(t);
	else
		call_on_cancel(w->call, turn_on_cancel, w);
}

void coding_wait_turn(struct coding_work *w, struct str path, void (*then)(struct coding_work *w))
{
	turn_wait(w, TURN_FILE, path, then);
}

void coding_wait_whole(struct coding_work *w, bool writes, void (*then)(struct coding_work *w))
{
	turn_wait(w, writes ? TURN_WRITES_ALL : TURN_READS_ALL, STR_NONE, then);
}

/* A sandbox tells about its own files alone: no other sandbox has to wait for it. */
static bool turn_has_file(const struct coding_turn *t, const struct coding_work *w,
			  const struct file_stat *st)
{
	return t->state == TURN_HAS && t->ino && t->ino == st->ino && t->dev == st->dev &&
	       (t->work->sandbox == w->sandbox || (!t->told && !st->told));
}

bool coding_has_file(struct coding_work *w, const struct file_stat *st)
{
	const struct coding_turn *o = w->all->turns;

	while (o && (o == w->turn || !turn_has_file(o, w, st)))
		o = o->next;
	if (o) {
		w->turn->state = TURN_BEHIND;
		w->turn->behind = o;
		call_on_cancel(w->call, turn_on_cancel, w);
		return false;
	}
	w->turn->dev = st->dev;
	w->turn->ino = st->ino;
	w->turn->told = st->told;
	return true;
}

/* ---- the end of a call --------------------------------------------------------------------- */

/* The next call in the queue goes on once this one has ended: its memory is gone then. */
static struct coding *work_leave(struct coding_work *w)
{
	struct coding *k = w->turn ? w->all : NULL;

	if (w->turn)
		turn_end(w);
	conversation_unref(take_ptr(w->conversation));
	return k;
}

void coding_answer(struct coding_work *w, const void *result)
{
	struct coding *k = work_leave(w);

	call_answer(w->call, result);
	if (k)
		turn_next(k);
}

void coding_fail(struct coding_work *w, const struct err *e)
{
	struct coding *k = work_leave(w);

	call_fail(w->call, e);
	if (k)
		turn_next(k);
}

struct call *coding_leave(struct coding_work *w)
{
	struct coding *k = work_leave(w);

	if (k)
		turn_next(k);
	return w->call;
}

/* ---- places -------------------------------------------------------------------------------- */

static void place_remove(struct coding *k, struct coding_place *p)
{
	struct coding_place **at = &k->places;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	place_free(p);
}

void coding_forget(struct coding *k, const void *session)
{
	struct coding_place *p = k->places, *next;
	struct coding_session **at = &k->conversations, *t;

	for (; p; p = next) {
		next = p->next;
		if (p->workspace || p->session != session)
			continue;
		if (p->lazy.making)
			p->forgotten = true;
		else
			place_remove(k, p);
	}
	while ((t = *at)) {
		if (t->session != session) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		conversation_unref(t);
	}
}

static void place_on_go(struct lazy_sandbox *s)
{
	struct coding_place *p = (struct coding_place *)s;

	if (p->forgotten)
		place_remove(p->all, p);
}

static struct coding_place *place_of(struct coding *k, const struct call *c,
				     const struct workspace *w, struct err *e)
{
	const void *session = w ? NULL : call_session(c);
	struct coding_place *p = k->places;
	struct lazy_sandbox wanted;

	lazy_sandbox_init(&wanted, c);
	while (p && (p->workspace != w || p->session != session || p->forgotten ||
		     !lazy_sandbox_same(&p->lazy, &wanted)))
		p = p->next;
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	p->lazy = wanted;
	p->lazy.on_go = place_on_go;
	p->lazy.needed = (struct sandbox_needed){ .what = "of the workspace",
						  .cwd = STR_LIT(CODING_ROOT),
						  .labels = { &p->label, 1 },
						  .idle_seconds = CODING_IDLE_S,
						  .volumes = p->volumes };
	p->label = (struct field_pair){ STR_LIT("workspace"), str_of(w ? w->name : "") };
	p->all = k;
	p->workspace = w;
	p->session = session;
	p->scope = w ? (unsigned)(w - k->workspaces) : k->scopes++;
	p->next = k->places;
	k->places = p;
	return p;
}

/* The sandbox is there. */
static int work_enter(struct coding_work *w, struct err *e)
{
	struct call *c = w->call;
	struct str id = str_of(w->wait.id);

	if (!w->lasting)
		w->files = id;
	w->hs = call_hub_sandbox(c, id, e);
	w->sandbox = w->hs ? call_sandbox(c, id, e) : NULL;
	if (w->sandbox)
		w->conversation = conversation_of(w->all, c, e);
	if (w->conversation)
		w->conversation->refs++;
	return w->conversation ? 0 : -1;
}

static void work_go(void *data, const struct err *err)
{
	struct coding_work *w = data;
	struct err e;

	if (err || work_enter(w, &e) < 0)
		coding_fail(w, err ? err : &e);
	else
		w->then(w);
}

/* The sandbox still has the folder that was removed. */
static bool place_is_replaced(const struct coding_place *p)
{
	struct stat now;

	return p->workspace && p->folder.st_ino && stat(p->workspace->dir, &now) == 0 &&
	       (now.st_ino != p->folder.st_ino || now.st_dev != p->folder.st_dev);
}

/* The text that a call fails with before a new sandbox is made; NULL: none. */
static const char *place_tells(struct coding_place *p, bool there)
{
	if (there && place_is_replaced(p))
		return "the folder of the workspace was removed and made again; the next call has "
		       "a new sandbox with it, without the programs and other files of the one "
		       "before";
	if (!there && p->lazy.id[0] && !p->workspace)
		return "the sandbox of this session has ended, and its files with it; the next "
		       "call has a new one, which is empty";
	return NULL;
}

/* The folder of the workspace, and the toolchains for it. A client of the operator is no operator
 * to call_is_operator(), since it came by a door for agents, but works for him. */
static int place_fill(struct coding_place *p, const struct call *c, struct err *e)
{
	enum { TOOLCHAINS_MAX = 64 << 10 };
	const struct policy *policy = call_guard(c)->policy;
	struct sandbox_needed *to = &p->lazy.needed;
	const struct workspace *w = p->workspace;
	struct toolchains found;

	to->env = (struct field_map){ NULL, 0 };
	p->volumes[0] = (struct volume){ str_of(w->dir), STR_LIT(CODING_ROOT), w->mode, false };
	to->n_volumes = 1;
	if (!toolchains_given(policy ? config_file(policy->config) : NULL, w->dir,
			      call_principal(c)->is_operator))
		return 0;
	arena_free(p->arena);
	p->arena = arena_new(TOOLCHAINS_MAX);
	if (!p->arena)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (toolchains_find(p->arena, &found, e) < 0)
		return -1;
	to->env = found.env;
	for (size_t i = 0; i < found.read.n && to->n_volumes < VOLUMES_MAX; i++)
		p->volumes[to->n_volumes++] = (struct volume){ found.read.p[i], found.read.p[i],
							       VOLUME_RO, false };
	return 0;
}

static int place_find(struct coding_place *p, struct coding_work *w, struct err *e)
{
	struct lazy_sandbox *lazy = &p->lazy;
	bool there = !lazy->making && lazy_sandbox_is_there(lazy, w->call);
	const char *tells = lazy->making ? NULL : place_tells(p, there);
	const struct workspace *of = p->workspace;

	if (tells) {
		lazy->id[0] = '\0';
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "%s", tells);
	}
	w->wait = (struct lazy_wait){ .call = w->call, .then = work_go, .data = w };
	w->scope = p->scope;
	w->lasting = of != NULL;
	w->files = of ? str_of(of->dir) : STR_NONE;
	if (there) {
		memcpy(w->wait.id, lazy->id, sizeof(w->wait.id));
		work_go(w, NULL);
		return 0;
	}
	if (!lazy->making && of && stat(of->dir, &p->folder) < 0)
		p->folder = (struct stat){ .st_ino = 0 };
	if (!lazy->making && of && place_fill(p, w->call, e) < 0)
		return -1;
	return lazy_sandbox_make(lazy, &w->wait, e);
}

struct coding_hosting {
	const struct coding *k;
	const struct workspace *of; /* NULL: none */
	struct arena *a;
};

static bool is_within(struct str path, const char *dir)
{
	size_t n = strlen(dir);

	return n > 1 && path.n >= n && memcmp(path.p, dir, n) == 0 &&
	       (path.n == n || path.p[n] == '/');
}

/* If several folders contain it, the innermost counts. */
static int path_from_host(void *data, const struct field *row, struct str *s, struct err *e)
{
	const struct coding_hosting *h = data;
	const struct workspace *in = NULL;
	struct str path = *s, scheme = { s->p, 0 };
	autobuf struct buf to = BUF_INIT(CODING_PATH_ARG_MAX + sizeof(CODING_ROOT));
	const char *copy;

	(void)row;
	if (str_starts(path, "file://")) {
		scheme.n = strlen("file://");
		path = (struct str){ path.p + scheme.n, path.n - scheme.n };
	}
	if (is_within(path, CODING_ROOT))
		return 0;
	for (size_t i = 0; i < h->k->n_workspaces; i++) {
		const struct workspace *w = &h->k->workspaces[i];

		if (is_within(path, w->dir) && (!in || strlen(w->dir) > strlen(in->dir)))
			in = w;
	}
	if (!in)
		return 0;
	if (in != h->of)
		return err_set(e, ERR_INVALID,
			       "that path is of the workspace %s: name it in "
			       "`workspace`",
			       in->name);
	path = (struct str){ path.p + strlen(in->dir), path.n - strlen(in->dir) };
	if (buf_addf(&to, e, "%.*s" CODING_ROOT "%.*s", STR_ARG(scheme), STR_ARG(path)) < 0)
		return -1;
	copy = arena_dup(h->a, buf_str(&to), e);
	if (copy)
		*s = (struct str){ copy, to.n };
	return copy ? 0 : -1;
}

int coding_expand(struct call *c, void *request, struct err *e)
{
	const struct field_table *t = call_op(c)->request;
	struct coding_hosting h = { call_coding(c), NULL, call_arena(c) };
	struct str name = STR_NONE;
	struct err ignored = ERR_INIT;

	if (!coding_has_workspaces(h.k))
		return 0;
	for (size_t i = 0; i < t->n; i++) {
		if (strcmp(t->rows[i].name, "workspace") == 0)
			name = *(const struct str *)((const char *)request + t->rows[i].at);
	}
	if (choose_workspace(h.k, name, &h.of, &ignored) < 0)
		return 0; /* told when it runs */
	return field_change(t, request, FIELD_PATH, h.a, path_from_host, &h, e);
}

int coding_spell_path(struct str base, struct str said, struct arena *a, struct str *ret,
		      struct err *e)
{
	autobuf struct buf spelt = BUF_INIT(CODING_PATH_ARG_MAX + sizeof("file://"));
	char *copy;

	if (path_read_spelt(STR_LIT(CODING_ROOT), said, CODING_PATH_MAX, &spelt, e) < 0)
		return -1;
	copy = arena_dup(a, buf_str(&spelt), e);
	if (copy)
		*ret = (struct str){ copy, spelt.n };
	return copy ? 0 : -1;
}

void coding_enter(struct coding_work *w, struct call *c, struct str workspace,
		  void (*then)(struct coding_work *w))
{
	struct coding *k = call_coding(c);
	const struct workspace *of = NULL;
	struct coding_place *p = NULL;
	struct err e = ERR_INIT;

	w->call = c;
	w->all = k;
	w->then = then;
	if (!k)
		err_set(&e, ERR_UNSUPPORTED, "there are no coding sessions here");
	else if (choose_workspace(k, workspace, &of, &e) == 0)
		p = place_of(k, c, of, &e);
	if (!p || place_find(p, w, &e) < 0)
		coding_fail(w, &e);
}
