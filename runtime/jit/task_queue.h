// TaskQueue: tasks run by a few threads that start when they are needed.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace kiln {

class TaskQueue {
public:
  using Task = std::function<void(bool stopped)>; // must not throw

  explicit TaskQueue(int threads) : most_(threads) {}
  // Waits for the tasks that run. Those that have not begun are called with `stopped` true.
  ~TaskQueue() {
    std::deque<Task> left;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      left.swap(tasks_);
    }
    changed_.notify_all();
    for (const Task& task : left) task(true);
    for (std::thread& thread : threads_) thread.join();
  }
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // Throws std::system_error when not one thread can be started.
  void add(Task task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
      if (static_cast<int>(tasks_.size()) > idle_ && static_cast<int>(threads_.size()) < most_) start_thread();
    }
    changed_.notify_one();
  }

private:
  void start_thread() { // under the lock
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) { // no more threads for this user: those that run will do
      if (!threads_.empty()) return;
      tasks_.pop_back();
      throw;
    }
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      ++idle_;
      changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      --idle_;
      if (tasks_.empty()) return;
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task(false);
      task = nullptr; // what it holds goes without the lock
      lock.lock();
    }
  }

  int most_, idle_ = 0;
  bool stopping_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::vector<std::thread> threads_;
};

} // namespace kiln
