#!/usr/bin/env node
// Runs the program that the npm package for this system carries: the same arguments, streams, signals and exit status.
// If node is killed by SIGKILL, it ends alone: the command goes on to its timeout.
'use strict';
const { spawn } = require('child_process');
const { constants } = require('os');
const { isatty } = require('tty');

const args = process.argv.slice(2);
const carrier = `cordon-sandbox-${process.platform}-${process.arch}`;
const file = process.platform === 'win32' ? 'cordon.exe' : 'cordon';
let program;

// Agents take the status 2 of a hook for a refusal, and some of them take any other failure for consent.
const hook = args[0] === 'hook';
function refuse(text) {
	console.error(`cordon: ${text}`);
	process.exit(hook ? 2 : 125);
}

process.on('uncaughtException', (error) =>
	refuse(`${program || carrier} cannot be started: ${error.code || error.message}`));

const programs = require('../package.json').optionalDependencies;
if (!(carrier in programs))
	refuse(`there is no package with the program for ${process.platform} on ${process.arch}`);
try {
	program = require.resolve(`${carrier}/${file}`);
} catch {
	refuse(`the package ${carrier} is missing, which carries the program: npm install ${carrier}@${programs[carrier]}`);
}

// What is typed at a terminal comes to the program by itself, and once is enough.
const typed = [0, 1, 2].some(isatty);
let child;
for (const name of ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'])
	process.on(name, () => (typed && (name === 'SIGINT' || name === 'SIGQUIT')) || child.kill(name));
child = spawn(program, args, { stdio: 'inherit' });
child.on('error', (error) => {
	if (!child.pid)
		throw error;
});
child.on('exit', (status, signal) => {
	if (hook && status !== 0)
		process.exit(2);
	if (!signal)
		process.exit(status);
	process.exitCode = 128 + constants.signals[signal];	// where node is not ended by it
	process.removeAllListeners(signal);
	process.kill(process.pid, signal);
});
