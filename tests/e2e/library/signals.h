/* Signals that arrive at any moment, as in a program that has a use for them. */
#pragma once
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_bool stop;
static atomic_int signals;

static void on_signal(int number)
{
	(void)number;
	signals++;
}

/* A thread of its own, until `stop`. */
static void *send_signals(void *arg)
{
	while (!stop) {
		kill(getpid(), SIGUSR1);
		usleep(700);
	}
	return arg;
}
