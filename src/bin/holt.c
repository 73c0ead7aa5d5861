#include "base/log.h"
#include "bin/libraries.h"
#include "bin/serve_parts.h"
#include "cli/verb.h"
#include "tools/tools.h"

int main(int argc, char **argv)
{
	const struct cli cli = {
		.tools = tools,
		.n_tools = tools_n,
		.parts = serve_parts,
		.n_parts = serve_parts_n,
	};

	log_init("holt");
	libraries_init();
	return cli_main(&cli, argc, argv);
}
