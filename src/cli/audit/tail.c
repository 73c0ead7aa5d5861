/* `holt audit tail`: the last records, and those that come. */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>

#include "cli/audit/audit.h"
#include "cli/common/safe.h"
#include "guard/audit/log.h"
#include "guard/audit/query.h"
#include "guard/audit/read.h"

enum { LINES_DEFAULT = 10, LINES_MAX = 1000000, POLL_MS = 200 };

struct tail_options {
	struct verb_options common;
	const char *who, *action, *target, *outcome;
	uint32_t lines, output;
	bool follow, no_reads;
};

static const struct option_row rows[] = {
	OPTION(struct tail_options, lines, OPTION_COUNT, "lines", .letter = 'n', .arg = "N",
	       .max = LINES_MAX, .doc = "Number of records; 10 by default."),
	OPTION(struct tail_options, follow, OPTION_FLAG, "follow", .letter = 'f',
	       .doc = "Continue with new records until interrupted."),
	OPTION(struct tail_options, who, OPTION_TEXT, "who", .arg = "NAME",
	       .doc = "Only calls of this principal."),
	OPTION(struct tail_options, action, OPTION_TEXT, "action", .arg = "NAME",
	       .doc = "Only calls of this operation, or of all whose names begin with it: "
		      "'sandbox.'."),
	OPTION(struct tail_options, target, OPTION_TEXT, "target", .arg = "ID",
	       .doc = "Only calls that name this sandbox."),
	OPTION(struct tail_options, outcome, OPTION_TEXT, "outcome", .arg = "NAME",
	       .doc = "Only calls with this outcome: ok, or the name of a failure."),
	OPTION(struct tail_options, no_reads, OPTION_FLAG, "no-reads",
	       .doc = "Without reads that have succeeded."),
	OUTPUT_ROW(struct tail_options),
	HELP_ROW(struct tail_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);
static const struct tail_options defaults = { .lines = LINES_DEFAULT };

struct tail {
	const struct tail_options *o;
	int folder, fd;
	unsigned *files;
	size_t n, at; /* at: the file that is read */
	struct audit_reader *reader;
	uint64_t skip; /* matching records before the first that is printed */
};

static bool tail_matches(const struct tail_options *o, const struct audit_record *r)
{
	return (!o->who || str_is(r->who, o->who)) &&
	       (!o->action || str_is(r->action, o->action) ||
		(str_ends(str_of(o->action), ".") && str_starts(r->action, o->action))) &&
	       (!o->target || str_is(r->target, o->target)) &&
	       (!o->outcome || str_is(r->outcome, o->outcome)) &&
	       !(o->no_reads && audit_is_read(r));
}

/* Records have printable ASCII only, where they are what the reader takes for one; damaged ones
 * have what they like. */
static void tail_print(const struct tail_options *o, struct str line, const struct audit_record *r)
{
	if (o->output == OUTPUT_JSON) {
		fwrite(line.p, 1, line.n, stdout);
		putchar('\n');
		return;
	}
	const struct str parts[] = { r->time,
				     r->event.n ? r->event : r->id,
				     r->event.n ? r->session : r->who,
				     r->action,
				     r->outcome,
				     r->target };

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (i > 0 && parts[i].n)
			putchar(' ');
		safe_line(stdout, parts[i]);
	}
	if (r->timed)
		printf(" %llu ms", (unsigned long long)r->ms);
	putchar('\n');
}

static int tail_open(struct tail *t, struct err *e)
{
	char name[AUDIT_FILE_NAME];

	audit_reader_free(take_ptr(t->reader));
	close_fd(&t->fd);
	audit_file_name(t->files[t->at], name);
	t->fd = openat(t->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (t->fd < 0)
		return err_sys(e, errno, "%s", name);
	t->reader = audit_reader_new(t->fd, 0, e);
	return t->reader ? 0 : -1;
}

/* Reads the file to its end: counts what matches, or prints it. */
static int tail_read(struct tail *t, bool print, uint64_t *count, struct err *e)
{
	struct audit_record r;
	struct str line;
	int rc;

	while ((rc = audit_reader_next(t->reader, &line, &r, e)) > 0) {
		if (!tail_matches(t->o, &r))
			continue;
		++*count;
		if (print && *count > t->skip)
			tail_print(t->o, line, &r);
	}
	return rc;
}

static int tail_list(struct tail *t, struct err *e)
{
	ssize_t n;

	free(t->files);
	n = audit_files(t->folder, &t->files, e);
	t->n = n < 0 ? 0 : (size_t)n;
	if (n < 0)
		return -1;
	return t->n ? 0 : err_set(e, ERR_PATH_NOT_FOUND, "there is no audit log");
}

/* Finds the file in which the last records begin, from the newest on. */
static int tail_last(struct tail *t, uint64_t *count, struct err *e)
{
	uint64_t found = 0;

	t->at = t->n;
	do {
		t->at--;
		if (tail_open(t, e) < 0 || tail_read(t, false, &found, e) < 0)
			return -1;
	} while (t->at > 0 && found < t->o->lines);
	t->skip = found > t->o->lines ? found - t->o->lines : 0;
	*count = 0;
	return tail_open(t, e);
}

/* The file after this one, where there is one. */
static int tail_next(struct tail *t, struct err *e)
{
	unsigned file = t->files[t->at];

	if (tail_list(t, e) < 0)
		return -1;
	for (size_t i = 0; i < t->n; i++) {
		if (t->files[i] <= file)
			continue;
		t->at = i;
		return tail_open(t, e) < 0 ? -1 : 1;
	}
	for (t->at = t->n - 1; t->at > 0 && t->files[t->at] != file;)
		t->at--;
	return 0;
}

static int tail_go(struct tail *t, struct err *e)
{
	uint64_t count = 0;
	int next;

	if (tail_list(t, e) < 0 || tail_last(t, &count, e) < 0)
		return -1;
	for (;;) {
		if (tail_read(t, true, &count, e) < 0)
			return -1;
		next = tail_next(t, e);
		if (next < 0 || (next == 0 && !t->o->follow))
			return next;
		if (next == 0) {
			if (fflush(stdout) != 0)
				return err_sys(e, errno, "standard output");
			nanosleep(&(struct timespec){ .tv_nsec = POLL_MS * 1000000 }, NULL);
		}
	}
}

static int tail_run(const struct verb_input *in, struct err *e)
{
	struct tail t = { .o = in->options, .fd = -1 };
	int rc;

	t.folder = audit_dir(e);
	rc = t.folder < 0 ? -1 : tail_go(&t, e);
	audit_reader_free(t.reader);
	close_fd(&t.fd);
	close_fd(&t.folder);
	free(t.files);
	if (rc < 0 && e->code == ERR_PATH_NOT_FOUND)
		return cli_fail(e), AUDIT_EXIT_NOT_FOUND;
	return rc < 0 ? -1 : cli_flush(e);
}

const struct verb audit_tail_verb = {
	.name = "audit tail",
	.usage = "[OPTION...]",
	.doc = "Print the last records of the audit log.",
	.options = &options,
	.defaults = &defaults,
	.size = sizeof(struct tail_options),
	.usage_exit = 125,
	.run = tail_run,
};
