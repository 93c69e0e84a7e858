// Messages, byte strings on a stream socket, between Kiln and its worker processes.
#pragma once
#include <chrono>
#include <optional>
#include <string>

namespace kiln {

// False when the other side is gone.
bool send_message(int socket, const std::string& message);

enum class Received { message, closed, timed_out };
// Waits for at most `limit`, in steady time; no limit: for ever. `closed` also stands for one of an absurd size.
Received receive_message(int socket, std::string& message, std::optional<std::chrono::milliseconds> limit = {});

} // namespace kiln
