/** Node.js before 20 has no symbols for `using`: what is compiled for it looks for them here. */
const symbols = Symbol as { asyncDispose?: symbol; dispose?: symbol };
symbols.dispose ??= Symbol('Symbol.dispose');
symbols.asyncDispose ??= Symbol('Symbol.asyncDispose');
