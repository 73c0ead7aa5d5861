#pragma once
/*
 * What the hub and holt-js say to each other. A frame is its length, four bytes, the lowest first,
 * and a JSON object with a member "kind". The hub writes to holt-js's standard input and reads from
 * its standard output.
 *
 *	hub to holt-js
 *	run	code, cpu_ms, heap, stack, output (bytes), calls: begins a run; check (1): the code
 *		is a module that is only compiled, and the value is an array of names of its exports
 *	module	answers an import: functions (names), source (text of an ES module) or error
 *	result	answers a call: id, and result (as that of MCP's tools/call) or error
 *
 *	holt-js to hub
 *	import	name: the code imports this module; nothing else is said before the answer
 *	console	level, text
 *	call	id, module, function (index in what the module was answered with), arguments
 *	done	the run's end: value (JSON; absent: undefined), again
 *	failed	the run's end: name, message, stack, line, column, limit, again
 *
 * "again" says that nothing of this run is under way, so that the process can serve another. What
 * holt-js says is hostile: the code may have taken over its process.
 */
enum {
	CODE_FRAME_MAX = 8 << 20, /* bytes */
	CODE_HEAD = 4,
	CODE_ARGUMENTS_MAX = 1 << 20, /* bytes of a call's arguments */
	CODE_ARGUMENTS_DEPTH = 64, /* of them; {} is 1 deep */
	CODE_SOURCE_MAX = 512 << 10, /* bytes of code, and of a module's source */
	CODE_NAME_MAX = 128, /* bytes of a module's name */
	CODE_TOGETHER_MAX = 32, /* calls of a run that are under way */
};

/* How holt-js exits; 0: its input has ended. */
enum code_exit {
	CODE_EXIT_CPU = 90, /* the CPU limit, where the code could not be interrupted */
	CODE_EXIT_MEMORY = 91, /* no memory, not even to tell so */
	CODE_EXIT_WIRE = 92, /* a frame was wrong, or the hub has gone */
	CODE_EXIT_START = 93,
	CODE_EXIT_OVER = 94, /* the run is over, and the process can serve no other */
};
