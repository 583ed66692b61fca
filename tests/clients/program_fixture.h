// Runs command lines of the program against a FakeServer.
#pragma once

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "clients/cpp/command.h"
#include "gtest/gtest.h"
#include "tests/clients/fake_server.h"

namespace longshort::client {

class ProgramTest : public testing::Test {
 protected:
  ProgramTest() {
    v1::Model model;
    model.set_name("characters");
    model.set_version(3);
    model.set_architecture("language_model");
    model.set_tokenizer("fairseq_bytes");
    model.set_parameters(2650000);
    model.mutable_limits()->set_prompt_tokens(100);
    server_.models = {model};
  }

  // A classifier of images of 3 channels, up to 1000 bytes and 4 in a call.
  static v1::Model FlowersModel() {
    v1::Model model;
    model.set_name("flowers");
    model.set_version(1);
    model.set_architecture("cvt");
    model.set_precision("fp32");
    model.set_parameters(800000);
    v1::ClassifierProperties& classifier = *model.mutable_classifier();
    classifier.set_input(v1::CLASSIFIER_INPUT_IMAGE);
    classifier.set_classes(3);
    for (const char* label : {"daisy", "rose", "tulip"}) classifier.add_labels(label);
    classifier.set_channels(3);
    model.mutable_limits()->set_images(4);
    model.mutable_limits()->set_image_bytes(1000);
    model.mutable_limits()->set_image_pixels(50'000'000);
    return model;
  }

  // A classifier of one document of bytes, up to 20 tokens, 8 in work.
  static v1::Model ReviewsModel() {
    v1::Model model;
    model.set_name("reviews");
    model.set_version(2);
    model.set_architecture("text_classifier");
    model.set_precision("fp32");
    model.set_parameters(100000);
    model.set_vocabulary_size(257);
    model.set_tokenizer("bytes_plus_one");
    v1::ClassifierProperties& classifier = *model.mutable_classifier();
    classifier.set_input(v1::CLASSIFIER_INPUT_TEXT);
    classifier.set_classes(2);
    for (const char* label : {"negative", "positive"}) classifier.add_labels(label);
    classifier.set_documents(1);
    classifier.set_max_document_tokens(20);
    model.mutable_limits()->set_inputs(64);
    model.mutable_limits()->set_window(8);
    return model;
  }

  // Runs `longshort --server=<the fake one> arguments...`.
  ExitCode Run(const std::vector<std::string>& arguments, const std::string& input = "") {
    std::vector<std::string> all = {"--server=" + server_.address()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return RunAlone(all, input);
  }

  // Runs `longshort arguments...`.
  ExitCode RunAlone(const std::vector<std::string>& arguments, const std::string& input = "") {
    std::istringstream in(input);
    std::ostringstream out;
    std::ostringstream error;
    Terminal terminal{.input = in,
                      .output = out,
                      .error = error,
                      .error_is_terminal = at_terminal_,
                      .output_is_terminal = at_terminal_};
    const ExitCode code = RunProgram(arguments, terminal,
                                     [](const Client::Options& options) { return std::make_shared<Client>(options); });
    output_ = out.str();
    error_ = error.str();
    return code;
  }

  FakeServer server_;
  // Whether a person reads the output and the errors.
  bool at_terminal_ = false;
  // Of the last run.
  std::string output_;
  std::string error_;
};

}  // namespace longshort::client
