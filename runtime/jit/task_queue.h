// TaskQueue: tasks run by a few threads that start when they are needed.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln {

class TaskQueue {
public:
  explicit TaskQueue(int threads) : most_(threads) {}
  // Waits for the tasks that run. Those that have not begun are called with `stopped` true.
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  using Task = std::function<void(bool stopped)>; // must not throw
  void add(Task task);                            // throws std::system_error when not one thread can be started

private:
  void start_thread(); // under the lock
  void work();
  int most_, idle_ = 0;
  bool stopping_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::vector<std::thread> threads_;
};

} // namespace kiln
