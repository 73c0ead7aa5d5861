/* The trees of `holt ws apply`: git has them, compares and merges them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/host/box.h"
#include "cli/common/safe.h"
#include "cli/ws/apply.h"

enum {
	NAMES_MAX = 256 << 20, /* bytes of names of a tree */
	SAID_MAX = 64 << 10,
	SHOWN_MAX = 16 << 20,
	LEFT_OUT_TOLD = 50,
	READ_AT_ONCE = 128, /* files */
};
static const char config[] = "[user]\n\tname = Holt\n\temail = holt@localhost\n"
			     "[core]\n\tfsync = all\n\tfsyncMethod = batch\n\tprotectNTFS = no\n"
			     "[merge]\n\trenames = no\n";
/* No file of the folder changes how git reads and merges. */
#define ATTRIBUTES "* -text -ident -filter -working-tree-encoding !merge\n"
/* Of apply_checkout() alone: all else has its objects in the repository. */
#define ALTERNATES "git/objects/info/alternates"
static const char missing[] = "0000000000000000000000000000000000000000";

/* ---- asking git ------------------------------------------------------------------------------ */

/* Returns git's exit status, at most `most`. */
static int tree_git(const struct apply *a, const char *const *words, struct str input, int most,
		    struct buf *ret, struct err *e)
{
	return git_run(a->repository, true, words, input, most, ret, e);
}

static struct apply_id tree_id(struct str said)
{
	struct apply_id id;

	snprintf(id.hex, sizeof(id.hex), "%.*s", STR_CUT(said, COMMIT_HEX_MAX));
	id.hex[strspn(id.hex, "0123456789abcdef")] = '\0';
	return id;
}

int apply_git(const struct apply *a, const char *const *words, struct str input,
	      struct apply_id *ret, struct err *e)
{
	autobuf struct buf said = BUF_INIT(SAID_MAX);

	if (tree_git(a, words, input, 0, &said, e) < 0)
		return -1;
	*ret = tree_id(buf_str(&said));
	return 0;
}

int apply_object(const struct apply *a, const char *name, struct apply_id *ret, struct err *e)
{
	const char *const words[] = { "rev-parse", "--verify", "--quiet", name, NULL };
	autobuf struct buf said = BUF_INIT(SAID_MAX);

	if (tree_git(a, words, STR_NONE, 1, &said, e) < 0)
		return -1;
	*ret = tree_id(buf_str(&said));
	return 0;
}

int apply_commit(const struct apply *a, const struct apply_id *tree, const char *message,
		 const struct apply_id *first, const struct apply_id *second, struct apply_id *ret,
		 struct err *e)
{
	const char *words[10] = { "commit-tree", tree->hex, "-m", message };
	size_t n = 4;

	if (first) {
		words[n++] = "-p";
		words[n++] = first->hex;
	}
	if (second) {
		words[n++] = "-p";
		words[n++] = second->hex;
	}
	return apply_git(a, words, STR_NONE, ret, e);
}

static int repository_write(const struct apply *a, const char *name, int flags, struct str text,
			    struct err *e)
{
	autoclose int fd = openat(a->data, name, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);

	return fd < 0 || fd_write(fd, text.p, text.n) < 0
		     ? err_sys(e, errno, "write into Holt's data folder")
		     : 0;
}

int apply_repository(struct apply *a, struct err *e)
{
	const char *const words[] = { "init", "-q", "--bare", "--template=", "git", NULL };
	autobuf struct buf said = BUF_INIT(SAID_MAX);

	if (unlinkat(a->data, ALTERNATES, 0) < 0 && errno != ENOENT)
		return err_sys(e, errno, "write into Holt's data folder");
	if (faccessat(a->data, "git/info/attributes", F_OK, 0) == 0)
		return 0;
	if (git_ask(a->data_path, true, words, &said, e) < 0)
		return -1;
	if (mkdirat(a->data, "git/info", 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "write into Holt's data folder");
	return repository_write(a, "git/config", O_APPEND, str_of(config), e) < 0
		     ? -1
		     : repository_write(a, "git/info/attributes", 0, str_of(ATTRIBUTES), e);
}

/* ---- names of a tree ------------------------------------------------------------------------- */

struct tree_names {
	struct buf text; /* each ends in NUL, and the bytes of them are in order */
	const char **p;
	size_t n;
};

static void names_fini(struct tree_names *t)
{
	buf_fini(&t->text);
	free(t->p);
}

static int names_ask(const struct apply *a, const char *const *words, struct tree_names *ret,
		     struct err *e)
{
	size_t n = 0;

	if (tree_git(a, words, STR_NONE, 0, &ret->text, e) < 0)
		return -1;
	for (size_t i = 0; i < ret->text.n; i++)
		n += ret->text.p[i] == '\0';
	ret->p = calloc(n + 1, sizeof(*ret->p));
	if (!ret->p)
		return err_sys(e, ENOMEM, "list the files");
	for (const char *at = ret->text.p; ret->n < n; at += strlen(at) + 1)
		ret->p[ret->n++] = at;
	return 0;
}

static int names_read(const struct apply *a, const struct apply_id *tree, struct tree_names *ret,
		      struct err *e)
{
	const char *const words[] = { "ls-tree", "-r", "-z", "--name-only", tree->hex, NULL };

	return names_ask(a, words, ret, e);
}

/* Whether there is a file of this path, or a directory. */
static bool names_have(const struct tree_names *t, const char *path)
{
	size_t low = 0, high = t->n, length = strlen(path);

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strncmp(path, t->p[middle], length);

		if (order == 0 && (!t->p[middle][length] || t->p[middle][length] == '/'))
			return true;
		if (order < 0 || (order == 0 && t->p[middle][length] > '/'))
			high = middle;
		else
			low = middle + 1;
	}
	return false;
}

/* ---- changes between two trees --------------------------------------------------------------- */

/* The rows that end in NUL: ":OLD NEW OLD-ID NEW-ID KIND", and then the path. */
static int changes_read(const struct apply *a, const struct apply_id *from,
			const struct apply_id *to, struct buf *ret, struct err *e)
{
	const char *const words[] = { "diff-tree",    "-r",	 "-z",	  "--raw", "--no-abbrev",
				      "--no-renames", from->hex, to->hex, NULL };

	return tree_git(a, words, STR_NONE, 0, ret, e);
}

/* false: at the end. */
static bool changes_next(const struct buf *rows, size_t *at, struct apply_op *ret)
{
	const char *row = rows->p + *at;
	char *end;

	if (*at >= rows->n || *row != ':')
		return false;
	ret->old = (unsigned)strtoul(row + 1, &end, 8);
	ret->new = (unsigned)strtoul(end + 1, &end, 8);
	end = strchr(end + 1, ' '); /* behind the old content */
	ret->content = tree_id(end ? str_of(end + 1) : STR_NONE);
	*at += strlen(row) + 1;
	ret->path = rows->p + *at;
	*at += strlen(ret->path) + 1;
	return end && *at <= rows->n;
}

struct guard {
	const struct apply *a;
	const struct tree_names *names; /* of the revision */
};

static bool guard_has(void *arg, const char *path)
{
	const struct guard *g = arg;
	struct stat st;

	return names_have(g->names, path) || apply_look(g->a, path, &st) > 0;
}

/* Whether a change is left out since programs of this machine act on the file; that is told. */
static bool guard_refuses(struct apply *a, const struct tree_names *names, const char *path)
{
	struct guard g = { a, names };

	if (!box_project_acts(path, guard_has, &g))
		return false;
	if (a->guarded) {
		apply_tell(path, "programs of this machine act on it");
		return false;
	}
	if (a->left_out++ < LEFT_OUT_TOLD)
		apply_tell(path, "left out without --protected: programs of this machine act on "
				 "it");
	return true;
}

/* Appends to what `update-index --index-info` reads: removals before all else, as a file may take
 * the place of a directory. */
static int overlay_rows(struct apply *a, const struct buf *rows, const struct tree_names *names,
			struct buf *ret, struct err *e)
{
	for (int removes = 1; removes >= 0; removes--) {
		struct apply_op op;

		for (size_t at = 0; changes_next(rows, &at, &op);) {
			const char *content = removes ? missing : op.content.hex;

			if ((op.new == 0) != removes || (names && guard_refuses(a, names, op.path)))
				continue;
			if (buf_addf(ret, e, "%o %s\t%s", op.new, content, op.path) < 0 ||
			    buf_add(ret, "", 1, e) < 0)
				return -1;
		}
	}
	return 0;
}

int apply_overlay(struct apply *a, const struct apply_id *onto, const struct apply_id *from,
		  const struct apply_id *to, bool guard, struct apply_id *ret, struct err *e)
{
	static const char *const update[] = { "update-index", "-z", "--replace", "--index-info",
					      NULL };
	static const char *const write[] = { "write-tree", NULL };
	const char *const read[] = { "read-tree", onto->hex, NULL };
	autobuf struct buf rows = BUF_INIT(NAMES_MAX), input = BUF_INIT(NAMES_MAX);
	struct tree_names names = { .text = BUF_INIT(NAMES_MAX) };
	struct apply_id none;
	int result = guard ? names_read(a, to, &names, e) : 0;

	if (result == 0 && (changes_read(a, from, to, &rows, e) < 0 ||
			    overlay_rows(a, &rows, guard ? &names : NULL, &input, e) < 0 ||
			    apply_git(a, read, STR_NONE, &none, e) < 0 ||
			    apply_git(a, update, buf_str(&input), &none, e) < 0 ||
			    apply_git(a, write, STR_NONE, ret, e) < 0))
		result = -1;
	names_fini(&names);
	return result;
}

/* ---- the folder as a tree -------------------------------------------------------------------- */

/* A link stands where the path needs a directory: that is what the folder has. */
static int look_at_link(struct apply *a, const char **path, struct stat *ret, struct err *e)
{
	char *above = arena_dup(&a->arena, str_of(*path), e);
	char *slash = above ? strchr(above, '/') : NULL;

	for (; slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (apply_look(a, above, ret) == 1 && S_ISLNK(ret->st_mode)) {
			*path = above;
			return 0;
		}
		*slash = '/';
	}
	return above ? err_set(e, ERR_INVALID, "%.120s: a link is in the way", *path) : -1;
}

/* Adds a file to what is read, if the folder has it. */
static int look_at(struct apply *a, const char *path, struct err *e)
{
	struct apply_seen *s = &a->seen[a->seen_n];
	int found = apply_look(a, path, &s->st);

	if (found < 0 && errno != ELOOP)
		return err_sys(e, errno, "look at %.120s", path);
	if (found < 0 && look_at_link(a, &path, &s->st, e) < 0)
		return -1;
	if (found == 0 || S_ISDIR(s->st.st_mode) ||
	    (a->seen_n && strcmp(a->seen[a->seen_n - 1].path, path) == 0))
		return 0;
	if (!S_ISREG(s->st.st_mode) && !S_ISLNK(s->st.st_mode))
		return err_set(e, ERR_INVALID, "%.120s is no file, directory or link here", path);
	s->path = arena_dup(&a->arena, str_of(path), e);
	a->seen_n++;
	return s->path ? 0 : -1;
}

static int open_seen(const struct apply *a, const struct apply_seen *s, struct err *e)
{
	int fd = apply_open_seen(a, s);

	if (fd >= 0 && fcntl(fd, F_SETFD, 0) == 0) /* git has it, too */
		return fd;
	close_fd(&fd);
	return err_set(e, ERR_CONFLICT, "%.120s changes while it is read, or can't be read: %s",
		       s->path, strerror(errno));
}

/* Puts a few files into the repository, and their rows behind those of the index. */
static int hash_some(const struct apply *a, const struct apply_seen *seen, size_t n,
		     struct buf *rows, struct err *e)
{
	static const char *const words[] = { "hash-object", "-w", "--no-filters", "--stdin-paths",
					     NULL };
	autobuf struct buf names = BUF_INIT(SAID_MAX), said = BUF_INIT(SAID_MAX);
	int fds[READ_AT_ONCE], result = 0;
	size_t opened = 0, at = 0;

	for (; result == 0 && opened < n; opened++) {
		fds[opened] = open_seen(a, &seen[opened], e);
		if (fds[opened] < 0)
			result = -1;
		else
			result = buf_addf(&names, e, "/proc/self/fd/%d\n", fds[opened]);
	}
	if (result == 0)
		result = tree_git(a, words, buf_str(&names), 0, &said, e);
	while (opened > 0)
		close_fd(&fds[--opened]);
	for (size_t i = 0; result == 0 && i < n; i++) {
		struct apply_id id = tree_id((struct str){ said.p + at, said.n - at });

		at += strlen(id.hex) + 1;
		if (buf_addf(rows, e, "%s %s\t%s",
			     S_ISLNK(seen[i].st.st_mode) ? "120000"
			     : seen[i].st.st_mode & 0100 ? "100755"
							 : "100644",
			     id.hex, seen[i].path) < 0 ||
		    buf_add(rows, "", 1, e) < 0)
			result = -1;
	}
	return result;
}

/* Those files of the folder that one of two trees has. git is given open files and no paths, since
 * somebody may put a link in the place of a file between its look and its reading. */
static int tree_of_folder(struct apply *a, const struct tree_names *x, const struct tree_names *y,
			  struct apply_id *ret, struct err *e)
{
	static const char *const clear[] = { "read-tree", "--empty", NULL };
	static const char *const add[] = { "update-index", "-z", "--index-info", NULL };
	static const char *const write[] = { "write-tree", NULL };
	autobuf struct buf rows = BUF_INIT(NAMES_MAX);
	struct apply_id none;

	a->seen_n = 0;
	a->seen = arena_array(&a->arena, x->n + y->n + 1, sizeof(*a->seen), e);
	if (!a->seen)
		return -1;
	for (size_t i = 0, j = 0; i < x->n || j < y->n;) {
		int order = i == x->n ? 1 : j == y->n ? -1 : strcmp(x->p[i], y->p[j]);

		if (look_at(a, order <= 0 ? x->p[i] : y->p[j], e) < 0)
			return -1;
		i += order <= 0;
		j += order >= 0;
	}
	for (size_t i = 0, n; i < a->seen_n; i += n) {
		n = a->seen_n - i < READ_AT_ONCE ? a->seen_n - i : READ_AT_ONCE;
		if (hash_some(a, &a->seen[i], n, &rows, e) < 0)
			return -1;
	}
	return apply_git(a, clear, STR_NONE, &none, e) < 0 ||
			       apply_git(a, add, buf_str(&rows), &none, e) < 0
		     ? -1
		     : apply_git(a, write, STR_NONE, ret, e);
}

static int read_folder(struct apply *a, const struct apply_id *base, const struct apply_id *theirs,
		       struct err *e)
{
	struct tree_names x = { .text = BUF_INIT(NAMES_MAX) }, y = { .text = BUF_INIT(NAMES_MAX) };
	int result = names_read(a, base, &x, e) < 0 || names_read(a, theirs, &y, e) < 0
			   ? -1
			   : tree_of_folder(a, &x, &y, &a->here, e);

	names_fini(&x);
	names_fini(&y);
	return result;
}

/* ---- another folder -------------------------------------------------------------------------- */

/* Files that base does not have. NULL: all. */
static int names_others(const struct apply *a, const struct apply_id *base, struct tree_names *ret,
			struct err *e)
{
	const char *const read[] = { "read-tree", base ? base->hex : "--empty", NULL };
	const char *const list[] = { "--work-tree", a->folder, "ls-files",
				     "-o",	    "-z",      base ? "--exclude-standard" : NULL,
				     NULL };
	struct apply_id none;
	size_t kept = 0;

	if (apply_git(a, read, STR_NONE, &none, e) < 0 || names_ask(a, list, ret, e) < 0)
		return -1;
	for (size_t i = 0; i < ret->n; i++) {
		const char *name = ret->p[i];

		if (name[strlen(name) - 1] == '/')
			apply_tell(name, "left out: it is a repository of its own");
		else
			ret->p[kept++] = name;
	}
	ret->n = kept;
	return 0;
}

int apply_snapshot(const struct apply *a, const char *folder, const struct apply_id *base,
		   struct apply_id *ret, struct err *e)
{
	struct apply from = { .dir = open(folder,
					  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) };
	struct tree_names had = { .text = BUF_INIT(NAMES_MAX) };
	struct tree_names others = { .text = BUF_INIT(NAMES_MAX) };
	int result;

	arena_init(&from.arena, 1 << 30);
	snprintf(from.folder, sizeof(from.folder), "%s", folder);
	memcpy(from.repository, a->repository, sizeof(from.repository));
	if (from.dir < 0)
		result = err_sys(e, errno, "%.200s", folder);
	else
		result = names_others(&from, base, &others, e) < 0 ||
					 (base && names_read(&from, base, &had, e) < 0)
			       ? -1
			       : tree_of_folder(&from, &had, &others, ret, e);
	names_fini(&had);
	names_fini(&others);
	arena_fini(&from.arena);
	close_fd(&from.dir);
	return result;
}

int apply_checkout(const struct apply *a, const char *objects, const char *commit,
		   const char *folder, struct err *e)
{
	const char *const read[] = { "read-tree", commit, NULL };
	const char *const write[] = { "--work-tree", folder, "checkout-index", "-a", "-q", NULL };
	autobuf struct buf text = BUF_INIT(PATH_MAX + 2);
	struct apply_id none;
	int result;

	if (buf_addf(&text, e, "%s\n", objects) < 0 ||
	    repository_write(a, ALTERNATES, O_TRUNC, buf_str(&text), e) < 0)
		return -1;
	result = apply_git(a, read, STR_NONE, &none, e) < 0 ||
				 apply_git(a, write, STR_NONE, &none, e) < 0
		       ? -1
		       : 0;
	if (unlinkat(a->data, ALTERNATES, 0) < 0 && result == 0)
		return err_sys(e, errno, "write into Holt's data folder");
	return result;
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* Conflicts are told. */
static int plan_merge(struct apply *a, const struct apply_id *base, const struct apply_id *theirs,
		      struct err *e)
{
	struct apply_id b, ours, other;
	const char *const words[] = { "merge-tree",    "--write-tree", "-z",	  "--name-only",
				      "--no-messages", ours.hex,       other.hex, NULL };
	autobuf struct buf said = BUF_INIT(NAMES_MAX);

	if (apply_commit(a, base, "base", NULL, NULL, &b, e) < 0 ||
	    apply_commit(a, &a->here, "folder", &b, NULL, &ours, e) < 0 ||
	    apply_commit(a, theirs, "revision", &b, NULL, &other, e) < 0 ||
	    tree_git(a, words, STR_NONE, 1, &said, e) < 0)
		return -1;
	a->result = tree_id(buf_str(&said));
	for (size_t at = strlen(a->result.hex) + 1; at < said.n; at += strlen(said.p + at) + 1) {
		apply_tell(said.p + at, "was changed here, too");
		a->conflicts++;
	}
	return 0;
}

static int seen_order(const void *path, const void *seen)
{
	return strcmp(path, ((const struct apply_seen *)seen)->path);
}

static int plan_ops(struct apply *a, struct err *e)
{
	autobuf struct buf rows = BUF_INIT(NAMES_MAX);
	struct apply_op op;
	size_t n = 0;

	a->n = 0;
	if (changes_read(a, &a->here, &a->result, &rows, e) < 0)
		return -1;
	for (size_t at = 0; changes_next(&rows, &at, &op);)
		n++;
	a->ops = arena_array(&a->arena, n, sizeof(*a->ops), e);
	for (size_t at = 0; a->ops && changes_next(&rows, &at, &op);) {
		op.path = arena_dup(&a->arena, str_of(op.path), e);
		if (!op.path)
			return -1;
		op.seen = bsearch(op.path, a->seen, a->seen_n, sizeof(*a->seen), seen_order);
		if (!op.seen != !op.old || ws_has_git_part(op.path))
			return err_set(e, ERR_BUG, "%.120s can't be changed", op.path);
		a->ops[a->n++] = op;
	}
	return a->ops ? 0 : -1;
}

int apply_plan(struct apply *a, const struct apply_id *base, const struct apply_id *theirs,
	       enum apply_way way, struct err *e)
{
	int result = read_folder(a, base, theirs, e);

	if (result == 0 && way == APPLY_ASK)
		result = plan_merge(a, base, theirs, e);
	else if (result == 0 && way == APPLY_THEIRS)
		result = apply_overlay(a, &a->here, base, theirs, false, &a->result, e);
	else if (result == 0)
		result = apply_overlay(a, theirs, base, &a->here, false, &a->result, e);
	return result < 0 || a->conflicts ? result : plan_ops(a, e);
}

/* form: as git has it, "-p" or "--name-status". */
static int show_read(const struct apply *a, const char *form, struct buf *to, struct err *e)
{
	const char *const words[] = {
		"diff-tree", "-r",	    form, "--no-ext-diff", "--no-textconv", "--no-renames",
		a->here.hex, a->result.hex, NULL
	};

	return tree_git(a, words, STR_NONE, 0, to, e);
}

int apply_show(const struct apply *a, struct err *e)
{
	autobuf struct buf patch = BUF_INIT(SHOWN_MAX), names = BUF_INIT(NAMES_MAX);
	struct err why = ERR_INIT;
	int result = show_read(a, "-p", &patch, &why);

	if (result == 0) {
		safe_text(stdout, buf_str(&patch), 0);
	} else if (why.code == ERR_TOO_LARGE) {
		puts("The changes are too large to be shown. These files have some:");
		result = show_read(a, "--name-status", &names, e);
		safe_text(stdout, buf_str(&names), 0);
	} else {
		*e = why;
	}
	return result;
}
