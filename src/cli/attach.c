/*
 * `holt attach`: an exec's output on ours, and our input and Ctrl-C to it. A link asks one thing at a time, so a
 * child of ours has a second one: it reads what is typed while we follow. Ctrl-\ goes away, and the exec goes on; so
 * does the end of us by any signal.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/job.h"
#include "cli/verb.h"

enum { EXIT_HOLT = 125, PIECE = 64 << 10, AGAIN_MS = 50 };

struct attach_options {
	struct verb_options common;
	const char *since;
	bool no_stdin;
};

static const struct option_row rows[] = {
	OPTION(struct attach_options, since, OPTION_TEXT, "since-offset", .arg = "N",
	       .doc = "Print what came behind so many bytes, too; only what comes if not said."),
	OPTION(struct attach_options, no_stdin, OPTION_FLAG, "no-stdin",
	       .doc = "Send it no input."),
	HELP_ROW(struct attach_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

/* ---- the child: input and signals ---------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	interrupted = 1;
}

static int post_signal(struct hub_link *l, const struct job_look *k, struct err *e)
{
	char path[JOB_WORDS_MAX];

	interrupted = 0;
	if (job_path(path, k->name, k->exec, "/signal", e) < 0)
		return -1;
	return hub_link_ask(l, "POST", path, STR_LIT("{\"signal\":2}"), NULL, e);
}

/* The end of our input is the end of its. A program that reads slowly is waited for. */
static int post_input(struct hub_link *l, const struct job_look *k, struct str bytes, struct err *e)
{
	const struct timespec again = { 0, AGAIN_MS * 1000000L };
	autobuf struct buf text = BUF_INIT(4 * PIECE);
	struct json_writer w = json_writer(&text);
	char path[JOB_WORDS_MAX];
	int result;

	json_write_object(&w);
	json_write_key(&w, "data_base64");
	json_write_base64(&w, bytes);
	json_write_key(&w, "close");
	json_write_bool(&w, bytes.n == 0);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0 || job_path(path, k->name, k->exec, "/stdin", e) < 0)
		return -1;
	while ((result = hub_link_ask(l, "POST", path, buf_str(&text), NULL, e)) < 0 &&
	       e->code == ERR_LIMIT)
		nanosleep(&again, NULL);
	return result;
}

/* SIGINT comes only while this waits. Where there is no more input it waits for that alone. */
static int pass_on(struct hub_link *l, const struct job_look *k, bool input, struct err *e)
{
	static char bytes[PIECE];
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	sigset_t none;
	ssize_t n;

	sigemptyset(&none);
	for (;;) {
		int ready = ppoll(&p, input, NULL, &none);

		if (interrupted && post_signal(l, k, e) < 0)
			return -1;
		if (ready <= 0)
			continue;
		n = read(STDIN_FILENO, bytes, sizeof(bytes));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		/* What it does not take is not read. */
		input = post_input(l, k, (struct str){ bytes, n > 0 ? (size_t)n : 0 }, e) == 0 &&
			n > 0;
	}
}

static void be_child(const struct job_look *k, bool input, pid_t parent)
{
	struct sigaction a = { .sa_handler = on_interrupt };
	struct hub_link *l;
	struct err e;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGQUIT, SIG_IGN);
	sigaction(SIGINT, &a, NULL);
	if (getppid() != parent || !(l = hub_link_open(&e)))
		_exit(0);
	pass_on(l, k, input, &e);
	_exit(0);
}

/* ---- the parent: output -------------------------------------------------------------------- */

static void on_quit(int number)
{
	_exit(0);
}

static int begin_offset(struct hub_link *l, struct job_look *k, const char *since, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[JOB_WORDS_MAX];

	if (since)
		return job_offset(since, &k->offset, e);
	if (job_path(path, k->name, k->exec, "", e) < 0 ||
	    hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	return json_uint64(json_get(json_root(doc), "next_offset"), &k->offset)
		     ? 0
		     : err_set(e, ERR_TRANSPORT, "the hub sent something unknown");
}

static int attach(const struct verb_input *in, int64_t *ret_code, struct err *e)
{
	const struct attach_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	char exec[JOB_ID_MAX + 1];
	struct job_look k = { .name = in->operands[0], .exec = exec };
	pid_t self = getpid(), child;
	sigset_t interrupt;
	int result;

	if (!l || job_choose(l, k.name, in->n_operands > 1 ? in->operands[1] : NULL, exec, e) < 0 ||
	    begin_offset(l, &k, o->since, e) < 0)
		return -1;
	/* It is the child's: one that comes before it looks waits for it. */
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_BLOCK, &interrupt, NULL);
	signal(SIGQUIT, on_quit);
	child = fork();
	if (child < 0)
		return err_sys(e, errno, "read input");
	if (child == 0)
		be_child(&k, !o->no_stdin, self);
	result = job_follow(l, &k, ret_code, e);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return result;
}

static int run(const struct verb_input *in)
{
	struct err e = ERR_INIT;
	int64_t code;

	return attach(in, &code, &e) < 0 ? hub_link_fail(&e) : (int)code;
}

const struct verb attach_verb = {
	.name = "attach",
	.usage = "[OPTION...] NAME [EXEC]",
	.doc = "Connect to an exec of a sandbox that runs.",
	.more = "What it prints comes here, and input goes to it, if it was started with -i.\n"
		"Ctrl-C sends it SIGINT; Ctrl-\\ goes away and leaves it running. The exit\n"
		"status is the command's.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct attach_options),
	.min_operands = 1,
	.max_operands = 2,
	.usage_exit = EXIT_HOLT,
	.run = run,
};
