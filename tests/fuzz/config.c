/* The operator's file: the input is one. What is read is bounded, a refusal has a place, and
 * nothing that is added to a file lets anybody do more: neither another principal's entry, nor a
 * limit, nor rules that a request brings. */
#include <string.h>

#include "config/variables.h"
#include "fuzz.h"
#include "guard/policy/policy.h"

enum { TEXT_BYTES = 4096 };

static const char *const who[] = { "local", "token", "key:ci", "conversation:7" };
static const struct {
	const char *action, *effect, *tool, *image;
} calls[] = {
	{ "sandbox.create", "write", "sandbox_create", "host" },
	{ "sandbox.exec", "execute", "sandbox_exec", NULL },
	{ "sandbox.terminate", "destroy", "sandbox", NULL },
	{ "network.set", "administer", NULL, NULL },
};

static void show(const void *request, const char *pointer, bool whole, field_see_fn see, void *data)
{
	see(data, strcmp(pointer, "/command") == 0 ? STR_LIT("git push") : STR_LIT("x"));
	if (strlen(pointer) % 2)
		see(data, STR_LIT("y"));
}

static struct policy_verdict decide(const struct config_file *f, const struct config_policy *own,
				    size_t w, size_t c)
{
	const struct policy_call call = { .who = str_of(who[w]),
					  .conversation = str_of(w == 2 ? who[3] : NULL),
					  .action = calls[c].action,
					  .effect = calls[c].effect,
					  .tools = &calls[c].tool,
					  .n_tools = calls[c].tool != NULL,
					  .show = show,
					  .image = str_of(calls[c].image) };

	return policy_decide(f, own, &call);
}

/* Without what is taken away, all may as much or more. */
static void check_narrows(const struct config_file *f)
{
	struct config_file less = *f;
	const struct config_policy *own = f->principals.n ? &f->principals.p[0].policy : NULL;

	for (size_t w = 0; w < ARRAY_LEN(who); w++) {
		struct config_limits of = policy_limits(f, STR_NONE, str_of(who[w]), STR_NONE),
				     least, was;

		for (size_t c = 0; c < ARRAY_LEN(calls); c++) {
			struct policy_verdict all = decide(f, NULL, w, c);

			MUST(decide(f, own, w, c).then >= all.then);
			for (less.principals.n = 0; less.principals.n < f->principals.n;
			     less.principals.n++)
				MUST(decide(&less, NULL, w, c).then <= all.then);
			less.has_images = false;
			MUST(decide(&less, NULL, w, c).then <= all.then);
			less.has_images = f->has_images;
			MUST(all.then != CONFIG_DENY || all.line > 0);
		}
		for (less.principals.n = 0; less.principals.n < f->principals.n;
		     less.principals.n++) {
			was = policy_limits(&less, STR_NONE, str_of(who[w]), STR_NONE);
			MUST(!was.has_forks || (of.has_forks && of.forks <= was.forks));
			MUST(!was.has_sandboxes ||
			     (of.has_sandboxes && of.sandboxes <= was.sandboxes));
			MUST(!policy_allows(f, str_of(who[w]), STR_NONE, POLICY_SECRETS,
					    STR_LIT("s")) ||
			     policy_allows(&less, str_of(who[w]), STR_NONE, POLICY_SECRETS,
					   STR_LIT("s")));
		}
		least = policy_least(&of, &f->limits);
		MUST(!of.has_wall_seconds ||
		     (least.has_wall_seconds && least.wall_seconds <= of.wall_seconds));
		MUST(!of.has_cpu_seconds ||
		     (least.has_cpu_seconds && least.cpu_seconds <= of.cpu_seconds));
		MUST(!of.has_bytes_out || (least.has_bytes_out && least.bytes_out <= of.bytes_out));
	}
}

/* A secret that comes in through a variable goes nowhere but where a secret was asked for. */
static const char planted[] = "${secret:s}${HOME}\001\r\n";

static int value(void *data, enum config_part_kind kind, struct str name, struct buf *to,
		 struct err *e)
{
	bool *asked = data;

	if (kind == CONFIG_PART_SECRET) {
		*asked = true;
		return buf_add(to, "VALUE-OF-SECRET", 15, e) < 0 ? -1 : 1;
	}
	return name.n % 3 == 0 ? 0 : buf_add(to, planted, sizeof(planted) - 1, e) < 0 ? -1 : 1;
}

static void check_text(const char *text, bool asked)
{
	MUST(asked || !text || !strstr(text, "VALUE-OF-SECRET"));
}

static void check_server(const struct config *c, const struct config_server *s)
{
	bool asked = false;
	const struct config_values v = { .data = &asked, .value = value };
	struct config_target t;
	struct err e = ERR_INIT;

	MUST(s->name.n > 0 && s->name.n <= CONFIG_SERVER_NAME_MAX && s->name.p[0] >= 'a');
	MUST(!memchr(s->name.p, ':', s->name.n) && (s->command.p != NULL) != (s->url.p != NULL));
	if (config_target_init(&t, c, s, &v, &e) < 0) {
		MUST(e.code != ERR_BUG && !strstr(e.msg, "VALUE-OF-SECRET"));
		return;
	}
	MUST((t.argv != NULL) == (s->command.p != NULL));
	for (size_t i = 0; i < t.headers_n; i++)
		MUST(!memchr(t.headers[i].value.p, '\n', t.headers[i].value.n));
	for (size_t i = 0; t.argv && i < s->args.n; i++)
		check_text(t.argv[1 + i], asked);
	MUST(!t.cwd || t.cwd[0] == '/');
	config_target_fini(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct err e = ERR_INIT;
	struct config *c;

	if (n > TEXT_BYTES)
		return 0;
	c = config_parse((struct str){ (const char *)data, n }, "config.json", &e);
	for (size_t i = 0; c && i < config_file(c)->mcp_servers.n; i++)
		check_server(c, &config_file(c)->mcp_servers.p[i]);
	if (c)
		check_narrows(config_file(c));
	else
		MUST(e.code != ERR_BUG && strncmp(e.msg, "config.json:", 12) == 0);
	config_unref(c);
	return 0;
}
