/* Terminals of an agent: programs in its sandbox, whose last output is kept. */
#include "agents/internal.h"
#include "json/document/utf8.h"

enum {
	OUTPUT_MAX = 1 << 20, /* bytes that are kept of each */
	ENV_MAX = 256,
	ARGV_MAX = 1024,
};

struct agent_terminal {
	struct agent *of;
	struct agent_terminal *next;
	char id[16];
	struct exec *exec; /* NULL: it has ended */
	struct buf output;
	size_t limit; /* of output */
	bool truncated, released;
	struct acp_exit exit;
	char signal[16];
};

static void terminal_free(struct agent_terminal *t)
{
	struct agent_terminal **at = &t->of->terminals;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	t->of->terminals_n--;
	buf_fini(&t->output);
	free(t);
}

/* The oldest output goes, whole characters of it. */
static void terminal_on_output(void *arg, enum exec_stream stream, const char *p, size_t n)
{
	struct agent_terminal *t = arg;
	struct err e;
	size_t drop;

	if (n > t->limit) {
		p += n - t->limit;
		n = t->limit;
		t->truncated = true;
	}
	drop = t->output.n + n > t->limit ? t->output.n + n - t->limit : 0;
	/* Much at once, since what stays is moved each time. */
	if (drop > 0 && drop < t->limit / 4)
		drop = t->limit / 4 < t->output.n ? t->limit / 4 : t->output.n;
	buf_drop(&t->output, drop);
	t->truncated |= drop > 0;
	if (buf_add(&t->output, p, n, &e) < 0)
		t->truncated = true;
}

static void terminal_on_exit(void *arg, const struct exec_result *x, const struct err *err)
{
	struct agent_terminal *t = arg;

	t->exec = NULL;
	t->exit = (struct acp_exit){ .over = true };
	if (err) {
		terminal_on_output(t, EXEC_STDERR, err->msg, strlen(err->msg));
		t->exit.has_code = true;
		t->exit.code = (uint32_t)err_info(err->code)->exit;
	} else if (x->signal) {
		snprintf(t->signal, sizeof(t->signal), "SIG%s", sigabbrev_np(x->signal) ?: "?");
		t->exit.signal = str_of(t->signal);
	} else {
		t->exit.has_code = true;
		t->exit.code = (uint32_t)x->exit_code;
	}
	for (size_t i = 0; i < ACP_ASKS_MAX; i++) {
		if (t->of->exits[i] && t->of->exits[i]->data == t)
			acp_answer_exit(take_ptr(t->of->exits[i]), &t->exit);
	}
	if (t->released)
		terminal_free(t);
}

static const struct exec_events terminal_events = { terminal_on_output, terminal_on_exit };

static int terminal_run(struct agent_terminal *t, const struct acp_ask *q, struct err *e)
{
	struct str argv[ARGV_MAX + 1];
	struct env_var env[ENV_MAX];
	struct exec_spec spec = { .argv = argv,
				  .env = env,
				  .cwd = q->terminal.cwd.p ? q->terminal.cwd : str_of(t->of->cwd) };

	if (q->terminal.env.n > ENV_MAX || q->terminal.args.n > ARGV_MAX)
		return err_set(e, ERR_TOO_LARGE, "too many arguments or variables");
	for (; spec.n_env < q->terminal.env.n; spec.n_env++)
		env[spec.n_env] = (struct env_var){ q->terminal.env.p[spec.n_env].name,
						    q->terminal.env.p[spec.n_env].value };
	if (q->terminal.args.n == 0) {
		spec.shell = q->terminal.command;
		spec.argv = NULL;
	} else {
		argv[spec.n_argv++] = q->terminal.command;
		for (size_t i = 0; i < q->terminal.args.n; i++)
			argv[spec.n_argv++] = q->terminal.args.p[i];
	}
	t->exec = exec_start(t->of->place.sandbox, &spec, &terminal_events, t, e);
	return t->exec ? 0 : -1;
}

static void terminal_create(struct agent *a, struct acp_ask *q)
{
	struct agent_terminal *t = a->terminals_n < AGENT_TERMINALS_MAX ? calloc(1, sizeof(*t))
									: NULL;
	struct err e;

	if (!t) {
		err_set(&e, ERR_LIMIT, "more than %d terminals", AGENT_TERMINALS_MAX);
		acp_refuse(q, &e);
		return;
	}
	*t = (struct agent_terminal){
		.of = a, .next = a->terminals, .output = BUF_INIT(OUTPUT_MAX), .limit = OUTPUT_MAX
	};
	if (q->terminal.has_output_limit && q->terminal.output_limit < OUTPUT_MAX)
		t->limit = (size_t)q->terminal.output_limit;
	snprintf(t->id, sizeof(t->id), "term-%u", ++a->terminals_made);
	a->terminals = t;
	a->terminals_n++;
	if (terminal_run(t, q, &e) < 0) {
		terminal_free(t);
		acp_refuse(q, &e);
		return;
	}
	acp_answer_terminal(q, str_of(t->id));
}

static void terminal_output(struct agent_terminal *t, struct acp_ask *q)
{
	struct str text = buf_str(&t->output);

	/* what was cut begins with a whole character */
	while (t->truncated && text.n > 0 && ((unsigned char)*text.p & 0xc0) == 0x80) {
		text.p++;
		text.n--;
	}
	acp_answer_output(q, text, t->truncated, &t->exit);
}

static void terminal_wait(struct agent_terminal *t, struct acp_ask *q)
{
	struct agent *a = t->of;
	size_t i = 0;

	if (!t->exec) {
		acp_answer_exit(q, &t->exit);
		return;
	}
	while (a->exits[i]) /* there are as many as asks */
		i++;
	q->data = t;
	a->exits[i] = q;
}

void agent_terminal_asked(struct agent *a, struct acp_ask *q)
{
	struct agent_terminal *t;
	struct err e;

	if (q->kind == ACP_ASK_TERMINAL) {
		terminal_create(a, q);
		return;
	}
	t = a->terminals;
	while (t && (t->released || !str_is(q->terminal_id, t->id)))
		t = t->next;
	if (!t) {
		err_set(&e, ERR_PATH_NOT_FOUND, "there is no such terminal");
		acp_refuse(q, &e);
	} else if (q->kind == ACP_ASK_OUTPUT) {
		terminal_output(t, q);
	} else if (q->kind == ACP_ASK_EXIT) {
		terminal_wait(t, q);
	} else {
		t->released = q->kind == ACP_ASK_RELEASE;
		if (t->exec)
			exec_kill(t->exec);
		else if (t->released)
			terminal_free(t);
		acp_answer_done(q);
	}
}

void agent_terminal_withdrawn(struct agent *a, struct acp_ask *q)
{
	for (size_t i = 0; i < ACP_ASKS_MAX; i++) {
		if (a->exits[i] == q)
			a->exits[i] = NULL;
	}
}

void agent_terminals_kill(struct agent *a)
{
	for (struct agent_terminal *t = a->terminals; t; t = t->next) {
		if (t->exec)
			exec_kill(t->exec);
	}
}

void agent_terminals_free(struct agent *a)
{
	while (a->terminals)
		terminal_free(a->terminals);
}
