#include "base/log.h"
#include "cli/verb.h"
#include "tools/tools.h"

int main(int argc, char **argv)
{
	const struct cli cli = { .tools = tools, .n_tools = tools_n };

	log_init("holt");
	return cli_main(&cli, argc, argv);
}
