#include "cli/verb.h"

#include <fcntl.h>
#include <string.h>

/* Holt's own failure, told apart from what a command that it runs may exit with. */
enum { EXIT_HOLT = 125 };

int cli_fail(const struct err *e)
{
	const struct err_info *info = err_info(e->code);

	fprintf(stderr, "holt: %s\n", e->msg);
	if (e->code != ERR_INVALID)
		fprintf(stderr, "      %s\n", info->remediation);
	return info->exit;
}

void cli_help(const struct verb *v, FILE *out)
{
	fprintf(out, "Usage: holt %s%s%s\n\n%s\n", v->name, *v->usage ? " " : "", v->usage, v->doc);
	if (v->more)
		fprintf(out, "\n%s\n", v->more);
	fprintf(out, "\nOptions:\n");
	option_help(v->options, out);
	fprintf(out, "\nMore: man %s%s\n", v->page ? "holt-" : "holt", v->page ? v->name : "");
}

void cli_help_all(FILE *out)
{
	fprintf(out, "Usage: holt VERB [OPTION...] [ARGUMENT...]\n\n"
		     "A computer for an AI agent, safely, on your own machine.\n\nVerbs:\n");
	for (size_t i = 0; i < verbs_n; i++)
		fprintf(out, "  %-10s%s\n", verbs[i]->name, verbs[i]->doc);
	fprintf(out, "\nholt help VERB tells the rest.\n");
}

static const char *verb_name(const void *of, size_t i)
{
	return verbs[i]->name;
}

const struct verb *cli_find(const char *name, struct err *e)
{
	const char *meant;

	for (size_t i = 0; i < verbs_n; i++) {
		if (strcmp(verbs[i]->name, name) == 0)
			return verbs[i];
	}
	meant = option_nearest(name, verb_name, NULL, verbs_n);
	if (meant)
		err_set(e, ERR_INVALID, "there is no verb '%.40s'; did you mean '%s'?", name,
			meant);
	else
		err_set(e, ERR_INVALID, "there is no verb '%.40s'; 'holt help' lists them", name);
	return NULL;
}

static int wrong_usage(const struct verb *v, const struct err *e)
{
	fprintf(stderr, "holt %s: %s\nTry 'holt help %s'.\n", v->name, e->msg, v->name);
	return v->usage_exit;
}

static int check_operands(const struct verb *v, int n, char **operands, struct err *e)
{
	if (n < v->min_operands)
		return err_set(e, ERR_INVALID, "something is missing: holt %s %s", v->name,
			       v->usage);
	if (n > v->max_operands)
		return err_set(e, ERR_INVALID, "too much: '%.40s'", operands[v->max_operands]);
	return 0;
}

/* argv[0] is the verb. */
static int run_verb_with(const struct cli *cli, const struct verb *v, int argc, char **argv)
{
	autofree void *options = calloc(1, v->size);
	struct err e = ERR_INIT;
	int at;

	if (!options) {
		err_set(&e, ERR_LIMIT, "out of memory");
		return cli_fail(&e);
	}
	if (v->defaults)
		memcpy(options, v->defaults, v->size);
	at = option_parse(v->options, argc, argv, options, &e);
	if (at < 0)
		return wrong_usage(v, &e);
	if (((const struct verb_options *)options)->help) {
		cli_help(v, stdout);
		return 0;
	}
	if (check_operands(v, argc - at, argv + at, &e) < 0)
		return wrong_usage(v, &e);
	return v->run(&(struct verb_input){
		.cli = cli,
		.options = options,
		.operands = argv + at,
		.n_operands = argc - at,
	});
}

/* A program may be started with standard descriptors closed; the next file opened would then be
 * taken for one of them. */
static void fill_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
			_exit(EXIT_HOLT);
	}
}

/* The spellings that people try first. */
static const struct {
	const char *option, *verb;
} spelled[] = {
	{ "--help", "help" },
	{ "-h", "help" },
	{ "--version", "version" },
	{ "-V", "version" },
};

int cli_main(const struct cli *cli, int argc, char **argv)
{
	struct err e = ERR_INIT;
	const struct verb *v;
	int status;

	fill_descriptors();
	if (argc < 2) {
		cli_help_all(stderr);
		return EXIT_HOLT;
	}
	for (size_t i = 0; i < ARRAY_LEN(spelled); i++) {
		if (strcmp(argv[1], spelled[i].option) == 0)
			argv[1] = (char *)spelled[i].verb;
	}
	v = cli_find(argv[1], &e);
	if (!v)
		return cli_fail(&e);
	status = run_verb_with(cli, v, argc - 1, argv + 1);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		err_set(&e, ERR_IO, "standard output: %s", strerror(errno));
		return cli_fail(&e);
	}
	return status;
}
