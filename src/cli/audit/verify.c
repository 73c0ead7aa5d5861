/* `holt audit verify`: whether the log, one file of it or a receipt is what was written. */
#include "guard/audit/verify.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "cli/audit/audit.h"
#include "cli/common/safe.h"

enum { RECEIPT_MAX = 4096 };

struct verify_options {
	struct verb_options common;
	const char *key;
	uint32_t output;
};

static const struct option_row rows[] = {
	OPTION(struct verify_options, key, OPTION_TEXT, "key", .arg = "FILE",
	       .doc = "Public key in PEM; by default key.pub of the log."),
	OUTPUT_ROW(struct verify_options),
	HELP_ROW(struct verify_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static const char *const verdicts[] = { [AUDIT_VERIFIED] = "verified",
					[AUDIT_MISMATCH] = "mismatch",
					[AUDIT_UNSEALED] = "unsealed",
					[AUDIT_NOT_FOUND] = "not found" };

static int verify_print(const struct audit_report *r, bool json, struct err *e)
{
	autobuf struct buf b = BUF_INIT(4096);
	struct json_writer w = json_writer(&b);

	if (!json) {
		printf("%s%s", verdicts[r->verdict], *r->why ? ": " : "");
		safe_line(stdout, str_of(r->why));
		printf("\n%llu records, %llu calls, %llu sessions\n",
		       (unsigned long long)r->records, (unsigned long long)r->calls,
		       (unsigned long long)r->sessions);
		return 0;
	}
	json_write_object(&w);
	json_write_name(&w, "verdict");
	json_write_text(&w, verdicts[r->verdict]);
	json_write_name(&w, "cause");
	json_write_text(&w, r->why);
	json_write_name(&w, "records");
	json_write_uint(&w, r->records);
	json_write_name(&w, "calls");
	json_write_uint(&w, r->calls);
	json_write_name(&w, "sessions");
	json_write_uint(&w, r->sessions);
	json_write_name(&w, "unsealed");
	json_write_uint(&w, r->open);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	printf("%s\n", b.p);
	return 0;
}

/* A small file that is one JSON object is a receipt; else it is a file of the log. */
static int verify_named(const char *path, int folder, const struct audit_public *p,
			struct audit_report *ret, struct err *e)
{
	bool in = strcmp(path, "-") == 0;
	autoclose int fd = in ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
			      : open(path, O_RDONLY | O_CLOEXEC);
	char text[RECEIPT_MAX];
	size_t n = 0;
	ssize_t got = 1;

	if (fd < 0)
		return errno == ENOENT ? err_set(e, ERR_PATH_NOT_FOUND, "there is no such file")
				       : err_sys(e, errno, "open what is to be verified");
	while (got > 0 && n < sizeof(text)) {
		got = read(fd, text + n, sizeof(text) - n);
		if (got < 0)
			return err_sys(e, errno, "read what is to be verified");
		n += (size_t)got;
	}
	if (n < sizeof(text) && audit_is_receipt((struct str){ text, n }))
		audit_verify_receipt((struct str){ text, n }, folder, p, ret);
	else if (in)
		return err_set(e, ERR_INVALID, "standard input is no receipt");
	else
		audit_verify_file(fd, p, ret);
	return 0;
}

static int verify_go(const struct verb_input *in, struct audit_report *ret, struct err *e)
{
	const struct verify_options *o = in->options;
	const char *path = in->n_operands ? in->operands[0] : NULL;
	struct err none;
	autoclose int folder = audit_dir(&none);
	struct audit_public p;

	if (folder < 0 && (!path || !o->key)) {
		*e = none;
		return -1;
	}
	if ((o->key ? audit_public_open(AT_FDCWD, o->key, &p, e)
		    : audit_public_open(folder, "key.pub", &p, e)) < 0)
		return -1;
	if (path)
		return verify_named(path, folder, &p, ret, e);
	audit_verify_log(folder, &p, ret);
	return 0;
}

static int verify_run(const struct verb_input *in, struct err *e)
{
	const struct verify_options *o = in->options;
	struct audit_report r;
	bool json = o->output == OUTPUT_JSON;
	int rc = verify_go(in, &r, e);

	if (rc < 0 && e->code == ERR_PATH_NOT_FOUND) {
		r = (struct audit_report){ .verdict = AUDIT_NOT_FOUND };
		snprintf(r.why, sizeof(r.why), "%s", e->msg);
		rc = 0;
		if (!json) {
			cli_fail(e);
			return AUDIT_EXIT_NOT_FOUND;
		}
	}
	if (rc == 0)
		rc = verify_print(&r, json, e);
	return rc < 0 ? -1 : cli_flush(e) ?: (int)r.verdict;
}

const struct verb audit_verify_verb = {
	.name = "audit verify",
	.usage = "[OPTION...] [FILE|RECEIPT]",
	.doc = "Verify the audit log, one of its files, or a receipt.",
	.more = "'-' is standard input. The exit status is 0 where all is verified, 1 where\n"
		"something was changed or is missing, 2 where nothing is wrong but an end is\n"
		"not sealed, and 3 where there is nothing to verify. A receipt with --key needs\n"
		"no data folder.",
	.options = &options,
	.size = sizeof(struct verify_options),
	.max_operands = 1,
	.usage_exit = 125,
	.run = verify_run,
};
