/*
 * Files of a sandbox. Its init opens them. It reads few bytes that are at hand itself; else it
 * sends a descriptor and they are read here, in the work pool, since a mounted host directory may
 * be slow. Bytes to write are sent to init in pieces, so that the sandbox pays for the memory; into
 * a host directory that may be slow they are written here. A descriptor is checked again before it
 * is used, since init is not trusted.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "box/host/internal.h"

/* One operation of box.h from start to callback. */
struct file_job {
	struct init_call call; /* first: the two are cast */
	enum file_op op;
	char path[PATH_MAX]; /* for messages */
	union {
		file_cb plain;
		file_read_cb read;
		file_stat_cb stat;
		file_list_cb list;
	} on_done;
	void *arg;
	uv_work_t work;
	int fd;
	uint32_t token;
	/* for reads and writes */
	uint64_t offset;
	char *bytes; /* owned, reading */
	const char *source; /* borrowed, writing */
	size_t n, sent;
	bool durable;
	int errnum;
	struct file_stat st;
	struct err err; /* kept during the last step of a write */
};

static void deliver_error(struct file_job *j, const struct err *err)
{
	switch (j->op) {
	case FILE_OP_READ:
		j->on_done.read(j->arg, STR_NONE, NULL, err);
		break;
	case FILE_OP_STAT:
		j->on_done.stat(j->arg, NULL, err);
		break;
	case FILE_OP_LIST:
		j->on_done.list(j->arg, NULL, 0, false, err);
		break;
	default:
		j->on_done.plain(j->arg, err);
	}
}

static void free_job(struct file_job *j)
{
	close_fd(&j->fd);
	sandbox_file_ended(j->call.sb);
	sandbox_unref(j->call.sb);
	free(j->bytes);
	free(j);
}

static void finish_error(struct file_job *j, const struct err *err)
{
	deliver_error(j, err);
	free_job(j);
}

static void finish_plain(struct file_job *j)
{
	j->on_done.plain(j->arg, NULL);
	free_job(j);
}

/* Translates init's errno into an error. */
static void reply_error(const struct file_job *j, const struct im_file_done *d, struct err *e)
{
	bool writes = j->op == FILE_OP_WRITE && j->token; /* the file is open, but takes no more */

	err_sys(e, d->errnum, "%s%.160s", writes ? "write " : "", j->path);
	own_disk(e);
	if (d->errnum == ENOMEM && j->op == FILE_OP_WRITE)
		e->code = ERR_MEMORY_FULL;
	if (d->not_a_file)
		err_set(e, ERR_NOT_A_FILE, "%.160s is not a %s of the sandbox's own", j->path,
			j->op == FILE_OP_LIST ? "directory" : "regular file");
}

static void convert_stat(const struct im_stat *from, struct file_stat *to)
{
	to->type = from->type <= FILE_OTHER ? (enum file_type)from->type : FILE_OTHER;
	to->mode = from->mode & 07777;
	to->size = from->size;
	to->mtime_ms = from->mtime_ms;
}

/* ---- calls to init --------------------------------------------------------------------------- */

static int send_call(struct file_job *j, struct im_file *m, const char *second, struct err *e)
{
	autobuf struct buf b = BUF_INIT(sizeof(*m) + 2 * PATH_MAX + WIRE_PIECE_MAX);
	bool has_piece = m->op == FILE_OP_WRITE || m->op == FILE_OP_APPEND;

	m->h.type = IM_FILE;
	if (buf_add(&b, m, sizeof(*m), e) < 0 ||
	    (m->op != FILE_OP_APPEND && buf_add(&b, j->path, strlen(j->path) + 1, e) < 0) ||
	    (second && buf_add(&b, second, strlen(second) + 1, e) < 0))
		return -1;
	if (has_piece) {
		size_t n = j->n - j->sent < WIRE_PIECE_MAX ? j->n - j->sent : WIRE_PIECE_MAX;

		if (j->sent + n == j->n)
			((struct im_file *)b.p)->flags |= FILE_FLAG_LAST;
		if (buf_add(&b, j->source + j->sent, n, e) < 0)
			return -1;
		j->sent += n;
	}
	return init_call_send(&j->call, (struct im_head *)b.p, b.n, e);
}

static void on_late_error(void *arg)
{
	struct file_job *j = arg;

	finish_error(j, &j->err);
}

static struct file_job *new_job(struct sandbox *sb, enum file_op op, void *arg)
{
	struct file_job *j = calloc(1, sizeof(*j));

	if (!j)
		abort(); /* without memory, no promise of an answer can be kept */
	j->call.sb = sandbox_ref(sb);
	j->call.answer = IM_FILE_DONE;
	j->call.answer_size = sizeof(struct im_file_done);
	sb->n_files++;
	j->op = op;
	j->arg = arg;
	j->fd = -1;
	return j;
}

/* Sends the first message of a job; a failure is reported in the loop's next turn. */
static void start_job(struct file_job *j, struct str path, const struct im_file *model,
		      struct str second)
{
	struct sandbox *sb = j->call.sb;
	struct im_file m = *model;
	char to[PATH_MAX];

	m.op = j->op;
	if (sandbox_path(sb, path, j->path, &j->err) > 0 &&
	    (!second.p || sandbox_path(sb, second, to, &j->err) > 0) &&
	    send_call(j, &m, second.p ? to : NULL, &j->err) == 0)
		return;
	if (box_later(sb->box, on_late_error, j, &j->err) < 0)
		abort();
}

/* The end of operations that return nothing. */
static void on_plain_reply(struct init_call *c, const void *answer, size_t n, int fd,
			   const struct err *err)
{
	const struct im_file_done *d = answer;
	struct file_job *j = (struct file_job *)c;
	struct err e = ERR_INIT;

	j->fd = fd;
	if (!err && d->errnum) {
		reply_error(j, d, &e);
		err = &e;
	}
	if (err)
		finish_error(j, err);
	else
		finish_plain(j);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int check_regular(int fd, struct stat *st)
{
	if (fstat(fd, st) < 0)
		return errno;
	return S_ISREG(st->st_mode) ? 0 : EINVAL;
}

static void read_work(uv_work_t *w)
{
	struct file_job *j = w->data;
	size_t got = 0;
	uint64_t rest;
	struct stat st;

	j->errnum = check_regular(j->fd, &st);
	if (j->errnum)
		return;
	j->st.size = (uint64_t)st.st_size;
	j->st.dev = st.st_dev;
	j->st.ino = st.st_ino;
	rest = j->st.size > j->offset ? j->st.size - j->offset : 0;
	if (rest < j->n)
		j->n = (size_t)rest;
	j->bytes = malloc(j->n + 1);
	j->errnum = j->bytes ? 0 : ENOMEM;
	while (!j->errnum && got < j->n) {
		ssize_t n = pread(j->fd, j->bytes + got, j->n - got, (off_t)(j->offset + got));

		if (n < 0 && errno != EINTR)
			j->errnum = errno;
		if (n == 0)
			break;
		got += n > 0 ? (size_t)n : 0;
	}
	j->n = got;
}

static void read_done(uv_work_t *w, int status)
{
	struct file_job *j = w->data;
	struct err e = ERR_INIT;

	if (j->errnum) {
		err_sys(&e, j->errnum, "read %.160s", j->path);
		finish_error(j, &e);
		return;
	}
	sandbox_count(j->call.sb, 0, j->n);
	j->on_done.read(j->arg, (struct str){ j->bytes, j->n }, &j->st, NULL);
	free_job(j);
}

/* Which file the descriptor is of, without waiting for its disk or network. 0 or an errno. */
static int read_which(int fd, struct file_stat *to)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &st) < 0)
		return errno;
	to->dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	to->ino = st.stx_ino;
	return S_ISREG(st.stx_mode) ? 0 : EINVAL;
}

/* Init has read the n bytes behind its answer. What it says of the file is true of nothing else;
 * without a descriptor it also says which file that is. */
static void read_here(struct file_job *j, const struct im_file_done *d, size_t n)
{
	struct err e = ERR_INIT;
	int errnum = 0;

	convert_stat(&d->st, &j->st);
	j->st.dev = d->dev;
	j->st.ino = d->ino;
	j->st.told = j->fd < 0;
	if (j->fd >= 0)
		errnum = read_which(j->fd, &j->st);
	if (errnum) {
		err_sys(&e, errnum, "read %.160s", j->path);
		finish_error(j, &e);
		return;
	}
	sandbox_count(j->call.sb, 0, n);
	j->on_done.read(j->arg, (struct str){ (const char *)(d + 1), n }, &j->st, NULL);
	free_job(j);
}

static void on_read_reply(struct init_call *c, const void *answer, size_t n, int fd,
			  const struct err *err)
{
	const struct im_file_done *d = answer;
	struct file_job *j = (struct file_job *)c;
	struct err e = ERR_INIT;

	if (!err && !d->errnum && !c->fd_lost && d->has_bytes && n - sizeof(*d) <= j->n) {
		j->fd = fd;
		read_here(j, d, n - sizeof(*d));
		return;
	}
	/* success without its descriptor is a lie of init, or this process could not take it */
	if (!err && !d->errnum && fd < 0) {
		init_call_no_fd(&j->call, &e);
		err = &e;
	}
	if (err || d->errnum) {
		on_plain_reply(c, answer, n, fd, err);
		return;
	}
	j->fd = fd;
	convert_stat(&d->st, &j->st);
	j->work.data = j;
	uv_queue_work(j->call.sb->box->loop, &j->work, read_work, read_done);
}

void file_read_start(struct sandbox *sb, struct str path, uint64_t offset, size_t max,
		     file_read_cb on_done, void *arg)
{
	struct file_job *j = new_job(sb, FILE_OP_READ, arg);

	j->on_done.read = on_done;
	j->call.on_reply = on_read_reply;
	j->offset = offset;
	j->n = max < FILE_READ_MAX ? max : FILE_READ_MAX;
	start_job(j, path, &(struct im_file){ .offset = offset, .want = (uint32_t)j->n }, STR_NONE);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* j->fd: the directory of the new file, says init. */
static void sync_work(uv_work_t *w)
{
	struct file_job *j = w->data;
	struct stat st;

	j->errnum = fstat(j->fd, &st) < 0		? errno
		  : !S_ISDIR(st.st_mode)		? EINVAL
		  : fsync(j->fd) < 0 && errno != EINVAL ? errno /* or it can't be */
							: 0;
}

static void sync_done(uv_work_t *w, int status)
{
	struct file_job *j = w->data;
	struct err e = ERR_INIT;

	if (j->errnum) {
		err_sys(&e, j->errnum, "write the directory of %.160s to the disk", j->path);
		own_disk(&e);
		finish_error(j, &e);
	} else {
		finish_plain(j);
	}
}

static void on_write_ended(struct init_call *c, const void *answer, size_t n, int fd,
			   const struct err *err)
{
	struct file_job *j = (struct file_job *)c;

	const struct im_file_done *d = answer;

	if (!err && j->err.code)
		err = &j->err; /* why it was given up */
	if (!err && !d->errnum && j->durable && fd >= 0) {
		j->fd = fd;
		j->work.data = j;
		uv_queue_work(j->call.sb->box->loop, &j->work, sync_work, sync_done);
		return;
	}
	on_plain_reply(c, answer, n, fd, err);
}

static void write_work(uv_work_t *w)
{
	struct file_job *j = w->data;
	size_t put = 0;
	struct stat st;

	j->errnum = check_regular(j->fd, &st);
	while (!j->errnum && put < j->n) {
		ssize_t n = write(j->fd, j->source + put, j->n - put);

		if (n < 0 && errno != EINTR)
			j->errnum = errno;
		put += n > 0 ? (size_t)n : 0;
	}
	if (!j->errnum && j->durable && fsync(j->fd) < 0)
		j->errnum = errno;
}

/* All bytes were written: makes init put the file in its place, or drop it (j->err is the
 * reason). */
static void write_end(struct file_job *j)
{
	struct im_file m = {
		.op = j->err.code ? FILE_OP_ABORT : FILE_OP_COMMIT,
		.token = j->token,
	};
	struct err e = ERR_INIT;

	close_fd(&j->fd);
	j->call.on_reply = on_write_ended;
	if (send_call(j, &m, NULL, &e) < 0)
		finish_error(j, &e);
}

static void write_done(uv_work_t *w, int status)
{
	struct file_job *j = w->data;

	if (j->errnum) {
		err_sys(&j->err, j->errnum, "write %.160s", j->path);
		own_disk(&j->err);
	} else {
		sandbox_count(j->call.sb, j->n, 0);
	}
	write_end(j);
}

/* Init has written the piece that it was sent. Or it sent a descriptor that this process could not
 * take; it holds the file until it is told what to do. */
static void write_next(struct file_job *j)
{
	struct im_file m = { .op = FILE_OP_APPEND, .token = j->token };
	struct err e = ERR_INIT;

	if (j->call.fd_lost) {
		init_call_no_fd(&j->call, &j->err);
		write_end(j);
	} else if (j->sent == j->n) {
		sandbox_count(j->call.sb, j->n, 0);
		finish_plain(j);
	} else if (send_call(j, &m, NULL, &e) < 0) {
		finish_error(j, &e);
	}
}

static void on_write_reply(struct init_call *c, const void *answer, size_t n, int fd,
			   const struct err *err)
{
	const struct im_file_done *d = answer;
	struct file_job *j = (struct file_job *)c;

	if (err || d->errnum) {
		on_plain_reply(c, answer, n, fd, err);
		return;
	}
	j->fd = fd;
	j->token = d->token;
	if (fd < 0) {
		write_next(j);
		return;
	}
	j->work.data = j;
	uv_queue_work(j->call.sb->box->loop, &j->work, write_work, write_done);
}

void file_write_start(struct sandbox *sb, struct str path, struct str bytes,
		      const struct file_write_opts *opts, file_cb on_done, void *arg)
{
	struct file_job *j = new_job(sb, FILE_OP_WRITE, arg);
	const struct im_file m = {
		.mode = opts->mode ? opts->mode : 0644,
		.flags = (opts->make_parents ? FILE_FLAG_PARENTS : 0) |
			 (opts->durable ? FILE_FLAG_DURABLE : 0),
	};

	j->on_done.plain = on_done;
	j->call.on_reply = on_write_reply;
	j->source = bytes.p;
	j->n = bytes.n;
	j->durable = opts->durable;
	if (bytes.n <= FILE_WRITE_MAX) {
		start_job(j, path, &m, STR_NONE);
		return;
	}
	err_set(&j->err, ERR_TOO_LARGE, "at most %d MiB at once", FILE_WRITE_MAX / (1024 * 1024));
	if (box_later(sb->box, on_late_error, j, &j->err) < 0)
		abort();
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void on_stat_reply(struct init_call *c, const void *answer, size_t n, int fd,
			  const struct err *err)
{
	const struct im_file_done *d = answer;
	struct file_job *j = (struct file_job *)c;

	if (err || d->errnum) {
		on_plain_reply(c, answer, n, fd, err);
		return;
	}
	j->fd = fd;
	convert_stat(&d->st, &j->st);
	j->on_done.stat(j->arg, &j->st, NULL);
	free_job(j);
}

void file_stat_start(struct sandbox *sb, struct str path, file_stat_cb on_done, void *arg)
{
	struct file_job *j = new_job(sb, FILE_OP_STAT, arg);

	j->on_done.stat = on_done;
	j->call.on_reply = on_stat_reply;
	start_job(j, path, &(struct im_file){ 0 }, STR_NONE);
}

/* Reads the entries after a reply of n bytes; stops at the first that is incomplete. */
static size_t read_entries(const struct im_file_done *d, size_t n, struct file_entry *out)
{
	const char *at = (const char *)(d + 1), *end = (const char *)d + n;
	size_t count = 0;

	while (count < d->entries && count < FILE_LIST_MAX) {
		struct im_entry entry;

		if ((size_t)(end - at) < sizeof(entry))
			break;
		memcpy(&entry, at, sizeof(entry));
		at += sizeof(entry);
		if ((size_t)(end - at) < entry.name_len)
			break;
		convert_stat(&entry.st, &out[count].st);
		out[count++].name = (struct str){ at, entry.name_len };
		at += entry.name_len;
	}
	return count;
}

static int by_name(const void *a, const void *b)
{
	const struct file_entry *x = a, *y = b;

	return str_cmp(x->name, y->name);
}

static void on_list_reply(struct init_call *c, const void *answer, size_t n, int fd,
			  const struct err *err)
{
	const struct im_file_done *d = answer;
	static struct file_entry entries[FILE_LIST_MAX];
	struct file_job *j = (struct file_job *)c;
	size_t count;

	if (err || d->errnum) {
		on_plain_reply(c, answer, n, fd, err);
		return;
	}
	j->fd = fd;
	count = read_entries(d, n, entries);
	qsort(entries, count, sizeof(entries[0]), by_name);
	sandbox_count(j->call.sb, 0, n);
	j->on_done.list(j->arg, entries, count, d->truncated != 0, NULL);
	free_job(j);
}

void file_list_start(struct sandbox *sb, struct str path, file_list_cb on_done, void *arg)
{
	struct file_job *j = new_job(sb, FILE_OP_LIST, arg);

	j->on_done.list = on_done;
	j->call.on_reply = on_list_reply;
	start_job(j, path, &(struct im_file){ 0 }, STR_NONE);
}

static void start_plain(struct sandbox *sb, enum file_op op, struct str path, uint32_t flags,
			struct str second, file_cb on_done, void *arg)
{
	struct file_job *j = new_job(sb, op, arg);

	j->on_done.plain = on_done;
	j->call.on_reply = on_plain_reply;
	start_job(j, path, &(struct im_file){ .flags = flags }, second);
}

void file_mkdir_start(struct sandbox *sb, struct str path, bool parents, file_cb on_done, void *arg)
{
	start_plain(sb, FILE_OP_MKDIR, path, parents ? FILE_FLAG_PARENTS : 0, STR_NONE, on_done,
		    arg);
}

void file_remove_start(struct sandbox *sb, struct str path, bool recursive, file_cb on_done,
		       void *arg)
{
	start_plain(sb, FILE_OP_REMOVE, path, recursive ? FILE_FLAG_RECURSIVE : 0, STR_NONE,
		    on_done, arg);
}

void file_move_start(struct sandbox *sb, struct str from, struct str to, file_cb on_done, void *arg)
{
	start_plain(sb, FILE_OP_MOVE, from, 0, to, on_done, arg);
}
