// The same as ../agent.c, in C++: owners release what they own.
//
//     c++ -std=c++17 agent.cpp -o agent $(pkg-config --cflags --libs cordon) && ./agent
#include <cordon.h>
#include <poll.h>

#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

template <auto release> struct Release { template <class T> void operator()(T *object) const { release(object); } };
using Error = std::unique_ptr<cordon_error, Release<cordon_error_free>>;
using Cordon = std::unique_ptr<cordon, Release<cordon_unref>>;
using Request = std::unique_ptr<cordon_request, Release<cordon_request_unref>>;
using Process = std::unique_ptr<cordon_process, Release<cordon_process_unref>>;
using Value = std::unique_ptr<cordon_value, Release<cordon_value_unref>>;

static Error err{ cordon_error_new() };

static void must(int result)
{
	if (result < 0)
		throw std::runtime_error(cordon_error_text(err.get(), "reason"));
}

static std::string text(const Value &value, const char *path)
{
	size_t length;
	const char *data = cordon_value_text(value.get(), path, &length);
	return data ? std::string(data, length) : std::string();
}

static Process start(const Cordon &cordon, const char *line, const char *read)
{
	const char *const argv[] = { "sh", "-c", line, nullptr };
	cordon_request *made;
	must(cordon_request_new(&made, err.get()));
	Request request{ made };
	must(cordon_request_set(request.get(), "session", "agent-cpp", err.get()));
	must(cordon_request_set(request.get(), "ask", "true", err.get()));
	if (read)
		must(cordon_request_set(request.get(), "read", read, err.get()));
	must(cordon_request_command(request.get(), argv, err.get()));
	cordon_process *process;
	must(cordon_start(cordon.get(), request.get(), &process, err.get()));
	return Process{ process };
}

static void follow(const Process &process)
{
	for (;;) {
		cordon_value *taken;
		must(cordon_process_next(process.get(), &taken, err.get()));
		if (!taken) {
			pollfd ready{ cordon_process_fd(process.get()), POLLIN, 0 };
			poll(&ready, 1, -1);
			continue;
		}
		Value event{ taken };
		std::string kind = text(event, "event"), data = text(event, "data");
		if (kind == "asks")
			must(cordon_process_answer(process.get(), text(event, "card").c_str(), text(event, "hash").c_str(), CORDON_APPROVED_ONCE,
			                           nullptr, err.get()));
		else if (data == "sleeping\n")
			must(cordon_process_cancel(process.get(), 2000, err.get()));
		else if (kind == "ended" && text(event, "result.ended_by") != "exit")
			std::cout << text(event, "result.ended_by") << "\n";
		else
			std::cout << data;
		if (kind == "ended")
			return;
	}
}

int main()
{
	cordon *opened;
	must(cordon_open(nullptr, &opened, err.get()));
	Cordon cordon{ opened };
	follow(start(cordon, "echo ran", "/var/tmp"));
	follow(start(cordon, "echo sleeping; exec sleep 1000", nullptr));
}
