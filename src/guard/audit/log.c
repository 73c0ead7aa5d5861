#include "guard/audit/log.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "guard/audit/read.h"

enum {
	FILE_BYTES = 16 << 20,
	FILES = 64,
	/* Two lines of each call that a hub can have under way, and as much again. */
	RESERVE = 4 << 20,
	LOCK_TRIES = 10000, /* of 20 us: another writer needs a few of them */
};

enum {
	SUM = 8,
	COPY_BYTES = AUDIT_HEAD_BYTES + 1 + SUM,
	HEAD_FILE_BYTES = AUDIT_HEAD_BYTES + COPY_BYTES,
};

struct audit_log {
	int folder, head_fd, fd;
	struct audit_head head;
	struct audit_limits limits;
	struct audit_key *key;
	struct audit_head written; /* by this process; file 0: nothing yet */
	char head_text[HEAD_FILE_BYTES]; /* as which it stands in the head's file */
	uint64_t reserved; /* end of the room that was reserved in the file */
};

/* ---- names and the head -------------------------------------------------------------------- */

void audit_file_name(unsigned file, char ret[AUDIT_FILE_NAME])
{
	snprintf(ret, AUDIT_FILE_NAME, "%06u.jsonl", file % 1000000);
}

unsigned audit_file_of(const char *name)
{
	char same[AUDIT_FILE_NAME];
	unsigned long file = strtoul(name, NULL, 10);

	if (file == 0 || file > 999999)
		return 0;
	audit_file_name((unsigned)file, same);
	return strcmp(name, same) == 0 ? (unsigned)file : 0;
}

void audit_head_write(const struct audit_head *h, char to[AUDIT_HEAD_BYTES + 1])
{
	snprintf(to, AUDIT_HEAD_BYTES + 1, "%06u %020llu %020llu %.64s\n", h->file % 1000000,
		 (unsigned long long)h->size, (unsigned long long)h->seq, h->hash);
}

bool audit_head_read(struct str text, struct audit_head *ret)
{
	char copy[AUDIT_HEAD_BYTES + 1], same[AUDIT_HEAD_BYTES + 1];
	unsigned long long size, seq;

	if (text.n != AUDIT_HEAD_BYTES)
		return false;
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	if (sscanf(copy, "%6u %20llu %20llu %64[0-9a-f]", &ret->file, &size, &seq, ret->hash) != 4)
		return false;
	ret->size = size;
	ret->seq = seq;
	audit_head_write(ret, same);
	return strcmp(copy, same) == 0;
}

static void head_write_copy(const struct audit_head *h, char to[COPY_BYTES + 1])
{
	const size_t n = AUDIT_HEAD_BYTES - 1;
	char sum[SHA256_HEX];

	audit_head_write(h, to);
	sha256_hex((struct str){ to, n }, sum);
	snprintf(to + n, COPY_BYTES + 1 - n, " %.*s\n", SUM, sum);
}

static bool head_read_copy(struct str text, struct audit_head *ret)
{
	char line[AUDIT_HEAD_BYTES], same[COPY_BYTES + 1];

	if (text.n != COPY_BYTES)
		return false;
	memcpy(line, text.p, sizeof(line));
	line[sizeof(line) - 1] = '\n';
	if (!audit_head_read((struct str){ line, sizeof(line) }, ret))
		return false;
	head_write_copy(ret, same);
	return memcmp(text.p, same, COPY_BYTES) == 0;
}

/* Whether the line that ends there has this hash, which is the last that is written of a head. */
static bool head_fits(int folder, const struct audit_head *h)
{
	char name[AUDIT_FILE_NAME], tail[AUDIT_LINE_MAX + 2], hash[SHA256_HEX];
	size_t n = h->size < sizeof(tail) ? h->size : sizeof(tail), at = n - 1;
	autoclose int fd = -1;

	audit_file_name(h->file, name);
	fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || n == 0 || pread(fd, tail, n, (off_t)(h->size - n)) != (ssize_t)n)
		return false;
	while (at > 0 && tail[at - 1] != '\n')
		at--;
	sha256_hex((struct str){ tail + at, n - 1 - at }, hash);
	return strcmp(hash, h->hash) == 0;
}

int audit_head_load(int folder, int fd, struct audit_head *ret)
{
	char text[HEAD_FILE_BYTES];
	ssize_t n = pread(fd, text, sizeof(text), 0);
	size_t line = n < AUDIT_HEAD_BYTES ? 0 : AUDIT_HEAD_BYTES;
	struct audit_head copy;
	bool has, copied;

	if (n < 0)
		return -1;
	has = audit_head_read((struct str){ text, line }, ret);
	copied = head_read_copy((struct str){ text + line, (size_t)n - line }, &copy);
	/* An older Holt writes the line alone. */
	if (copied && !(has && (memcmp(text, text + line, AUDIT_HEAD_BYTES - 1) == 0 ||
				head_fits(folder, ret))))
		*ret = copy;
	else if (!has)
		*ret = (struct audit_head){ .file = 0 };
	ret->copied = copied;
	return 0;
}

/* ---- opening ------------------------------------------------------------------------------- */

void audit_log_limit(struct audit_log *l, const struct audit_limits *limits)
{
	l->limits = *limits;
	l->limits.file_bytes = limits->file_bytes ?: FILE_BYTES;
	l->limits.files = limits->files ?: FILES;
}

void audit_log_close(struct audit_log *l)
{
	if (!l)
		return;
	close_fd(&l->fd);
	close_fd(&l->head_fd);
	close_fd(&l->folder);
	audit_key_free(l->key);
	free(l);
}

/* A process that was stopped in its few microseconds with the lock must not hold up all others for
 * ever. */
static int log_lock(struct audit_log *l, struct err *e)
{
	for (unsigned i = 0; i < LOCK_TRIES; i++) {
		if (flock(l->head_fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_sys(e, errno, "lock the audit log");
		nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	}
	return err_set(e, ERR_IO, "another process holds the audit log");
}

static void log_unlock(struct audit_log *l)
{
	flock(l->head_fd, LOCK_UN);
}

struct audit_log *audit_log_open(const char *folder, const struct audit_limits *limits,
				 struct err *e)
{
	AUTO(audit_log_close) struct audit_log *l = calloc(1, sizeof(*l));

	if (!l)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	l->fd = l->head_fd = -1;
	l->folder = -1;
	audit_log_limit(l, limits);
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make the folder of the audit log"), NULL;
	l->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (l->folder < 0 && errno == ENOTDIR) {
		err_set(e, ERR_FOLDER, "the audit log's folder is a link, or no folder");
		return NULL;
	}
	if (l->folder >= 0)
		l->head_fd = openat(l->folder, "head", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
				    0600);
	if (l->head_fd < 0)
		return err_sys(e, errno, "open the audit log"), NULL;
	if (log_lock(l, e) < 0)
		return NULL;
	l->key = audit_key_open(l->folder, e);
	log_unlock(l);
	return l->key ? take_ptr(l) : NULL;
}

int audit_log_folder(const struct audit_log *l)
{
	return l->folder;
}

const struct audit_key *audit_log_key(const struct audit_log *l)
{
	return l->key;
}

/* ---- files --------------------------------------------------------------------------------- */

static int log_open_file(struct audit_log *l, unsigned file, int flags, struct err *e)
{
	char name[AUDIT_FILE_NAME];
	int fd;

	audit_file_name(file, name);
	fd = openat(l->folder, name, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
	if (fd < 0)
		return err_sys(e, errno, "open a file of the audit log");
	close_fd(&l->fd);
	l->fd = fd;
	l->reserved = 0;
	return 0;
}

static int log_write_head(struct audit_log *l, const struct audit_head *h, struct err *e)
{
	char text[HEAD_FILE_BYTES + 1], *copy = text + AUDIT_HEAD_BYTES;

	if (l->head.file && !l->head.copied) {
		head_write_copy(&l->head, copy);
		if (pwrite(l->head_fd, copy, COPY_BYTES, AUDIT_HEAD_BYTES) != COPY_BYTES)
			return err_sys(e, errno, "write the audit log's head");
	}
	audit_head_write(h, text);
	head_write_copy(h, copy);
	l->written.file = 0;
	if (pwrite(l->head_fd, text, HEAD_FILE_BYTES, 0) != HEAD_FILE_BYTES)
		return err_sys(e, errno, "write the audit log's head");
	memcpy(l->head_text, text, HEAD_FILE_BYTES);
	l->head = *h;
	l->head.copied = true;
	l->written = l->head;
	return 0;
}

/* The next file, empty. Its name is on the disk before it has records. */
static int log_next_file(struct audit_log *l, struct err *e)
{
	struct audit_head h = l->head;
	struct stat s;

	h.file++;
	h.size = 0;
	if (log_open_file(l, h.file, O_CREAT, e) < 0)
		return -1;
	/* It is there, and empty, where a writer ended between it and the head. */
	if (fstat(l->fd, &s) < 0 || s.st_size > 0) {
		close_fd(&l->fd);
		return err_set(e, ERR_IO, "the next file of the audit log is there already");
	}
	if (fsync(l->folder) < 0)
		return err_sys(e, errno, "sync the folder of the audit log");
	/* The head's, too: without one, the log would tell that records are lost. */
	if (log_write_head(l, &h, e) < 0)
		return -1;
	return fdatasync(l->head_fd) < 0 ? err_sys(e, errno, "sync the audit log's head") : 0;
}

/* ---- appending ----------------------------------------------------------------------------- */

/* Not whole only where the disk is full, or the file too large. */
static bool log_write_line(int fd, struct audit_line *line)
{
	struct iovec parts[] = { { line->text, line->n }, { "\n", 1 } };
	ssize_t done;

	do {
		errno = 0;
		done = writev(fd, parts, 2);
	} while (done < 0 && errno == EINTR);
	return done == (ssize_t)line->n + 1;
}

/* One line, at the end that the head says. */
static int log_write(struct audit_log *l, struct audit_record *r, bool sign,
		     struct audit_line *line, struct err *e)
{
	struct audit_head h = l->head;
	char prev[AUDIT_HASH], when[AUDIT_TIME];
	int rc;

	memcpy(prev, h.hash, sizeof(prev));
	r->seq = ++h.seq;
	r->prev = str_of(prev);
	if (!r->time.n)
		r->time = audit_time(clock_unix_ms(), when);
	rc = audit_encode(r, line, e);
	if (rc == 0 && sign)
		rc = audit_sign(l->key, line, e);
	r->prev = STR_NONE;
	if (r->time.p == when)
		r->time = STR_NONE;
	if (rc < 0)
		return -1;
	sha256_hex((struct str){ line->text, line->n }, h.hash);
	if (!log_write_line(l->fd, line)) {
		err_sys(e, errno ?: ENOSPC, "write the audit log");
		/* Where even that fails, whoever appends next cuts it. */
		if (ftruncate(l->fd, (off_t)h.size) < 0)
			close_fd(&l->fd);
		return -1;
	}
	h.size += line->n + 1;
	return log_write_head(l, &h, e);
}

static int log_write_event(struct audit_log *l, struct audit_record *r, bool sign, struct err *e)
{
	struct audit_line line;

	return log_write(l, r, sign, &line, e);
}

/* ---- what a dead writer left --------------------------------------------------------------- */

/* Newest file of the folder; 0: there is none. */
static int log_newest(struct audit_log *l, unsigned *ret, struct err *e)
{
	autofree unsigned *files = NULL;
	ssize_t n = audit_files(l->folder, &files, e);

	*ret = n > 0 ? files[n - 1] : 0;
	return n < 0 ? -1 : 0;
}

int audit_log_check(const char *folder, struct err *e)
{
	static const struct audit_limits none = { .files = 0 };
	AUTO(audit_log_close) struct audit_log *l = NULL;
	unsigned newest;

	if (access(folder, F_OK) < 0 && errno == ENOENT)
		return 0;
	l = audit_log_open(folder, &none, e);
	if (!l || log_newest(l, &newest, e) < 0)
		return -1;
	return newest ? log_open_file(l, newest, 0, e) : 0;
}

/* Reads on from where the head says the log ended, or (chained: false) from the file's start,
 * where the first record is believed. *h is then where what is whole ends. */
static int log_scan(struct audit_log *l, struct audit_head *h, uint64_t from, bool chained,
		    struct err *e)
{
	AUTO(audit_reader_free) struct audit_reader *r = audit_reader_new(l->fd, from, e);
	struct audit_record rec;
	struct err bad;
	struct str line;

	if (!r)
		return -1;
	h->size = from;
	while (audit_reader_next(r, &line, &rec, &bad) > 0) {
		if (chained && (rec.seq != h->seq + 1 || !str_is(rec.prev, h->hash)))
			break;
		chained = true;
		h->seq = rec.seq;
		sha256_hex(line, h->hash);
		h->size = audit_reader_at(r);
	}
	return 0;
}

/* Looks behind the last whole record: a line without an end is cut. Whole lines that are no
 * records of this chain are evidence, so they stay, and the log goes on in another file. */
static int log_cut(struct audit_log *l, uint64_t size, uint64_t *ret_cut, struct err *e)
{
	char tail[AUDIT_LINE_MAX + 1];
	uint64_t rest = size - l->head.size;

	if (rest == 0)
		return 0;
	if (rest > sizeof(tail) || pread(l->fd, tail, rest, (off_t)l->head.size) != (ssize_t)rest ||
	    memchr(tail, '\n', rest))
		return 1;
	*ret_cut = rest;
	return ftruncate(l->fd, (off_t)l->head.size) < 0
		     ? err_sys(e, errno, "cut a torn line of the audit log")
		     : 0;
}

/* Finds the end of the newest file. 1: what follows it is kept, and another file is needed. */
static int log_find_end(struct audit_log *l, unsigned newest, bool *lost, uint64_t *cut,
			struct err *e)
{
	bool same = newest == l->head.file, resumes;
	struct stat s;

	if (log_open_file(l, newest, 0, e) < 0)
		return -1;
	if (fstat(l->fd, &s) < 0)
		return err_sys(e, errno, "the audit log");
	resumes = same && (uint64_t)s.st_size >= l->head.size;
	*lost |= same && !resumes;
	l->head.file = newest;
	if (log_scan(l, &l->head, resumes ? l->head.size : 0, resumes, e) < 0)
		return -1;
	return log_cut(l, (uint64_t)s.st_size, cut, e);
}

/* A head from before the last rotations, as a power cut can leave it: reads what they ended, so
 * that an empty newest file goes on where its chain ends. */
static int log_catch_up(struct audit_log *l, unsigned newest, struct err *e)
{
	uint64_t from = l->head.size;
	struct err none;

	for (unsigned file = l->head.file; file && file < newest; file++, from = 0) {
		if (log_open_file(l, file, 0, &none) < 0)
			return 0; /* retention has removed it, or somebody else has: verify tells */
		if (log_scan(l, &l->head, from, true, e) < 0)
			return -1;
	}
	return 0;
}

/* The head (file 0 where there is none) and the files do not agree. */
static int log_recover(struct audit_log *l, const struct audit_head *said, struct err *e)
{
	unsigned newest;
	bool lost = !said->file;
	uint64_t cut = 0;
	int rest = 1;

	if (log_newest(l, &newest, e) < 0)
		return -1;
	l->head = *said;
	if (!said->file)
		memset(l->head.hash, '0', sizeof(l->head.hash) - 1);
	if (!said->file && !newest)
		return log_next_file(l, e);
	if (log_catch_up(l, newest, e) < 0)
		return -1;
	if (newest && newest >= said->file)
		rest = log_find_end(l, newest, &lost, &cut, e);
	/* Its writer ended with the first head of all. */
	if (!said->file && newest == 1 && rest == 0 && l->head.size == 0)
		lost = false;
	if (rest < 0 || (rest > 0 ? log_next_file(l, e) : log_write_head(l, &l->head, e)) < 0)
		return -1;
	if (cut && log_write_event(l,
				   &(struct audit_record){
					   .event = STR_LIT("cut"), .counted = true, .count = cut },
				   false, e) < 0)
		return -1;
	if (!lost && rest == 0)
		return 0;
	return log_write_event(l,
			       &(struct audit_record){ .event = STR_LIT("lost"),
						       .reaches = true,
						       .upto = said->seq,
						       .hash = str_of(said->hash) },
			       false, e);
}

/* Whether the open file is the log's end as the head says. */
static bool log_is_current(struct audit_log *l, const struct audit_head *h)
{
	struct stat s;

	return l->fd >= 0 && h->file == l->head.file && fstat(l->fd, &s) == 0 && s.st_nlink > 0 &&
	       (uint64_t)s.st_size == h->size;
}

/* Whether nobody has written the head since this process did. */
static bool log_has_head(const struct audit_log *l)
{
	char text[HEAD_FILE_BYTES + 1];

	return l->written.file && pread(l->head_fd, text, sizeof(text), 0) == HEAD_FILE_BYTES &&
	       memcmp(text, l->head_text, HEAD_FILE_BYTES) == 0;
}

/* With the lock held: opens the file that the head names, and mends what is not as it says. */
static int log_load(struct audit_log *l, struct err *e)
{
	struct audit_head h = l->written;
	struct err none;

	if (!log_has_head(l) && audit_head_load(l->folder, l->head_fd, &h) < 0)
		return err_sys(e, errno, "read the audit log's head");
	if (!log_is_current(l, &h)) {
		l->head = h;
		if (!h.file || log_open_file(l, h.file, 0, &none) < 0 || !log_is_current(l, &h))
			return log_recover(l, &h, e);
	}
	l->head = h;
	return 0;
}

/* ---- rotation ------------------------------------------------------------------------------ */

/* Removes the oldest file. The chain knows its end before it is gone. */
static int log_drop(struct audit_log *l, unsigned file, unsigned next, struct err *e)
{
	char name[AUDIT_FILE_NAME];
	struct audit_record first;
	AUTO(arena_free) struct arena *a = arena_new(1 << 16);
	AUTO(json_free) struct json_doc *d = a ? audit_first(l->folder, next, a, &first, e) : NULL;

	audit_file_name(file, name);
	if (!d)
		return a ? -1 : err_set(e, ERR_LIMIT, "out of memory");
	if (log_write_event(l,
			    &(struct audit_record){ .event = STR_LIT("dropped"),
						    .reaches = true,
						    .upto = first.seq - 1,
						    .hash = first.prev },
			    true, e) < 0)
		return -1;
	return unlinkat(l->folder, name, 0) < 0 ? err_sys(e, errno, "remove an old audit file") : 0;
}

static bool log_is_old(struct audit_log *l, unsigned file)
{
	char name[AUDIT_FILE_NAME];
	struct stat s;

	audit_file_name(file, name);
	return l->limits.days && fstatat(l->folder, name, &s, AT_SYMLINK_NOFOLLOW) == 0 &&
	       time(NULL) - s.st_mtime > (time_t)l->limits.days * 24 * 3600;
}

static int log_retain(struct audit_log *l, struct err *e)
{
	autofree unsigned *files = NULL;
	ssize_t all = audit_files(l->folder, &files, e);
	size_t n = all < 0 ? 0 : (size_t)all;

	if (all < 0)
		return -1;
	for (size_t i = 0; i + 1 < n; i++) {
		if (n - i <= l->limits.files && !log_is_old(l, files[i]))
			return 0;
		if (log_drop(l, files[i], files[i + 1], e) < 0)
			return -1;
	}
	return 0;
}

static int log_rotate(struct audit_log *l, struct err *e)
{
	if (log_write_event(l, &(struct audit_record){ .event = STR_LIT("next") }, true, e) < 0)
		return -1;
	/* The head too: the next file goes on from it. */
	if (fdatasync(l->fd) < 0 || fdatasync(l->head_fd) < 0)
		return err_sys(e, errno, "sync the audit log");
	/* Give back what was reserved and not used. */
	if (ftruncate(l->fd, (off_t)l->head.size) < 0)
		return err_sys(e, errno, "end a file of the audit log");
	return log_next_file(l, e);
}

int audit_log_append(struct audit_log *l, struct audit_record *r, bool sign,
		     struct audit_line *line, struct err *e)
{
	bool rotated = false;
	int rc;

	if (log_lock(l, e) < 0)
		return -1;
	rc = log_load(l, e);
	if (rc == 0 && l->head.size >= l->limits.file_bytes) {
		rc = log_rotate(l, e);
		rotated = rc == 0;
	}
	if (rc == 0)
		rc = log_write(l, r, sign, line, e);
	if (rc == 0 && rotated) {
		struct err old;

		log_retain(l, &old); /* what it left, the next rotation tries again */
	}
	log_unlock(l);
	return rc;
}

int audit_log_reserve(struct audit_log *l, struct err *e)
{
	if (l->fd >= 0 && l->head.size + RESERVE / 2 < l->reserved)
		return 0;
	if (l->fd < 0) {
		int rc = log_lock(l, e);

		if (rc == 0) {
			rc = log_load(l, e);
			log_unlock(l);
		}
		if (rc < 0)
			return -1;
	}
	if (fallocate(l->fd, FALLOC_FL_KEEP_SIZE, (off_t)l->head.size, RESERVE) < 0 &&
	    (errno != EOPNOTSUPP || fd_disk_is_short(l->fd, RESERVE)))
		return err_set(e, ERR_STORE_FULL, "the disk has no room for the audit log");
	l->reserved = l->head.size + RESERVE;
	return 0;
}

uint64_t audit_log_room(const struct audit_log *l)
{
	return l->reserved > l->head.size ? l->reserved - l->head.size : 0;
}

int audit_log_dup(const struct audit_log *l, struct err *e)
{
	int fd = fcntl(l->fd, F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? err_sys(e, errno, "sync the audit log") : fd;
}
