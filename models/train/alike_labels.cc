// CheckLabelsDiffer: labels that a person would take for the same one.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "base/utf8.h"
#include "models/train/labelled_data.h"
#include "models/train/shown_labels.h"
#include "re2/re2.h"

namespace longshort::models {
namespace {

using Decompositions = std::map<std::string, std::pair<std::string, std::string>, std::less<>>;

// A mark that follows a letter, and pairs of a letter and the one character that letter and mark can also be written
// as. File names of macOS have letters and marks, most keyboards write the one character.
struct MarkedLetters {
  std::string_view mark, pairs;
};

// clang-format off
constexpr MarkedLetters kMarkedLetters[] = {
    {"\u0300", "AÀEÈIÌOÒUÙaàeèiìoòuùÜǛüǜNǸnǹЕЀИЍеѐиѝĒḔēḕŌṐōṑWẀwẁÂẦâầĂẰăằÊỀêềÔỒôồƠỜơờƯỪưừYỲyỳἀἂἁἃἈἊἉἋἐἒἑἓἘἚἙἛἠἢἡἣ"
     "ἨἪἩἫἰἲἱἳἸἺἹἻὀὂὁὃὈὊὉὋὐὒὑὓὙὛὠὢὡὣὨὪὩὫαὰεὲηὴιὶοὸυὺωὼΑᾺΕῈΗῊ᾿῍ϊῒΙῚ῾῝ϋῢΥῪ¨῭ΟῸΩῺ"},
    {"\u0301", "AÁEÉIÍOÓUÚYÝaáeéiíoóuúyýCĆcćLĹlĺNŃnńRŔrŕSŚsśZŹzźÜǗüǘGǴgǵÅǺåǻÆǼæǽØǾøǿ̈̈́¨΅ΑΆΕΈΗΉΙΊΟΌΥΎΩΏϊΐαάεέηήιί"
     "ϋΰοόυύωώϒϓГЃКЌгѓкќÇḈçḉĒḖēḗÏḮïḯKḰkḱMḾmḿÕṌõṍŌṒōṓPṔpṕŨṸũṹWẂwẃÂẤâấĂẮăắÊẾêếÔỐôốƠỚơớƯỨưứἀἄἁἅἈἌἉἍἐἔἑἕἘἜ"
     "ἙἝἠἤἡἥἨἬἩἭἰἴἱἵἸἼἹἽὀὄὁὅὈὌὉὍὐὔὑὕὙὝὠὤὡὥὨὬὩὭ᾿῎῾῞"},
    {"\u0302", "AÂEÊIÎOÔUÛaâeêiîoôuûCĈcĉGĜgĝHĤhĥJĴjĵSŜsŝWŴwŵYŶyŷZẐzẑẠẬạậẸỆẹệỌỘọộ"},
    {"\u0303", "AÃNÑOÕaãnñoõIĨiĩUŨuũVṼvṽÂẪâẫĂẴăẵEẼeẽÊỄêễÔỖôỗƠỠơỡƯỮưữYỸyỹ"},
    {"\u0304", "AĀaāEĒeēIĪiīOŌoōUŪuūÜǕüǖÄǞäǟȦǠȧǡÆǢæǣǪǬǫǭÖȪöȫÕȬõȭȮȰȯȱYȲyȳИӢиӣУӮуӯGḠgḡḶḸḷḹṚṜṛṝαᾱΑᾹιῑΙῙυῡΥῩ"},
    {"\u0306", "AĂaăEĔeĕGĞgğIĬiĭOŎoŏUŬuŭУЎИЙийуўЖӁжӂАӐаӑЕӖеӗȨḜȩḝẠẶạặαᾰΑᾸιῐΙῘυῠΥῨ"},
    {"\u0307", "CĊcċEĖeėGĠgġIİZŻzżAȦaȧOȮoȯBḂbḃDḊdḋFḞfḟHḢhḣMṀmṁNṄnṅPṖpṗRṘrṙSṠsṡŚṤśṥŠṦšṧṢṨṣṩTṪtṫWẆwẇXẊxẋYẎyẏſẛ"},
    {"\u0308", "AÄEËIÏOÖUÜaäeëiïoöuüyÿYŸΙΪΥΫιϊυϋϒϔЕЁІЇеёіїАӒаӓӘӚәӛЖӜжӝЗӞзӟИӤиӥОӦоӧӨӪөӫЭӬэӭУӰуӱЧӴчӵЫӸыӹHḦhḧÕṎõṏŪṺ"
     "ūṻWẄwẅXẌxẍtẗ"},
    {"\u0309", "AẢaảÂẨâẩĂẲăẳEẺeẻÊỂêểIỈiỉOỎoỏÔỔôổƠỞơởUỦuủƯỬưửYỶyỷ"},
    {"\u030a", "AÅaåUŮuůwẘyẙ"},
    {"\u030b", "OŐoőUŰuűУӲуӳ"},
    {"\u030c", "CČcčDĎdďEĚeěLĽlľNŇnňRŘrřSŠsšTŤtťZŽzžAǍaǎIǏiǐOǑoǒUǓuǔÜǙüǚGǦgǧKǨkǩƷǮʒǯjǰHȞhȟ"},
    {"\u030f", "AȀaȁEȄeȅIȈiȉOȌoȍRȐrȑUȔuȕѴѶѵѷ"},
    {"\u0311", "AȂaȃEȆeȇIȊiȋOȎoȏRȒrȓUȖuȗ"},
    {"\u0313", "αἀΑἈεἐΕἘηἠΗἨιἰΙἸοὀΟὈυὐωὠΩὨρῤ"},
    {"\u0314", "αἁΑἉεἑΕἙηἡΗἩιἱΙἹοὁΟὉυὑΥὙωὡΩὩρῥΡῬ"},
    {"\u031b", "OƠoơUƯuư"},
    {"\u0323", "BḄbḅDḌdḍHḤhḥKḲkḳLḶlḷMṂmṃNṆnṇRṚrṛSṢsṣTṬtṭVṾvṿWẈwẉZẒzẓAẠaạEẸeẹIỊiịOỌoọƠỢơợUỤuụƯỰưựYỴyỵ"},
    {"\u0326", "SȘsșTȚtț"},
    {"\u0327", "CÇcçGĢgģKĶkķLĻlļNŅnņRŖrŗSŞsşTŢtţEȨeȩDḐdḑHḨhḩ"},
    {"\u0328", "AĄaąEĘeęIĮiįUŲuųOǪoǫ"},
    {"\u032d", "DḒdḓEḘeḙLḼlḽNṊnṋTṰtṱUṶuṷ"},
    {"\u0330", "EḚeḛIḬiḭUṴuṵ"},
    {"\u0331", "BḆbḇDḎdḏKḴkḵLḺlḻNṈnṉRṞrṟTṮtṯZẔzẕhẖ"},
    {"\u0342", "ἀἆἁἇἈἎἉἏἠἦἡἧἨἮἩἯἰἶἱἷἸἾἹἿὐὖὑὗὙὟὠὦὡὧὨὮὩὯαᾶ¨῁ηῆ᾿῏ιῖϊῗ῾῟υῦϋῧωῶ"},
    {"\u0345", "ἀᾀἁᾁἂᾂἃᾃἄᾄἅᾅἆᾆἇᾇἈᾈἉᾉἊᾊἋᾋἌᾌἍᾍἎᾎἏᾏἠᾐἡᾑἢᾒἣᾓἤᾔἥᾕἦᾖἧᾗἨᾘἩᾙἪᾚἫᾛἬᾜἭᾝἮᾞἯᾟὠᾠὡᾡὢᾢὣᾣὤᾤὥᾥὦᾦὧᾧὨᾨὩᾩὪᾪὫᾫὬᾬὭᾭὮᾮὯᾯ"
     "ὰᾲαᾳάᾴᾶᾷΑᾼὴῂηῃήῄῆῇΗῌὼῲωῳώῴῶῷΩῼ"},
    {"\u0654", "اأوؤيئەۀہۂےۓ"},
    {"\u093c", "नऩरऱळऴकक़खख़गग़जज़डड़ढढ़फफ़यय़"},
    {"\u0a3c", "ਲਲ਼ਸਸ਼ਖਖ਼ਗਗ਼ਜਜ਼ਫਫ਼"},
    {"\u3099", "かがきぎくぐけげこごさざしじすずせぜそぞただちぢつづてでとどはばひびふぶへべほぼうゔゝゞカガキギ"
     "クグケゲコゴサザシジスズセゼソゾタダチヂツヅテデトドハバヒビフブヘベホボウヴワヷヰヸヱヹヲヺヽヾ"},
    {"\u309a", "はぱひぴふぷへぺほぽハパヒピフプヘペホポ"},
};
// clang-format on

std::vector<std::string> CharactersOf(std::string_view text) {
  std::vector<std::string> characters;
  while (!text.empty()) {
    const std::optional<Utf8Character> first = FirstUtf8Character(text);
    characters.emplace_back(text.substr(0, first.has_value() ? first->bytes : 1));
    text.remove_prefix(characters.back().size());
  }
  return characters;
}

// The parts of each character in kMarkedLetters, the mark last.
Decompositions AllDecompositions() {
  Decompositions all;
  for (const auto& [mark, pairs] : kMarkedLetters) {
    const std::vector<std::string> characters = CharactersOf(pairs);
    for (size_t i = 0; i + 1 < characters.size(); i += 2) all[characters[i + 1]] = {characters[i], std::string(mark)};
  }
  return all;
}

// Adds the parts of a character: letters and marks, or the consonants and vowels of a Korean syllable.
void Decompose(const std::string& character, const Decompositions& all, std::vector<std::string>& parts) {
  if (const auto found = all.find(character); found != all.end()) {
    Decompose(found->second.first, all, parts);
    parts.push_back(found->second.second);
    return;
  }
  constexpr char32_t kFirst = 0xAC00, kSyllables = 11172, kVowels = 21, kEnds = 28;
  const std::optional<Utf8Character> decoded = FirstUtf8Character(character);
  if (!decoded.has_value() || decoded->code_point < kFirst || decoded->code_point >= kFirst + kSyllables) {
    parts.push_back(character);
    return;
  }
  const char32_t syllable = decoded->code_point - kFirst, end = syllable % kEnds;
  parts.push_back(Utf8Of(0x1100 + syllable / (kVowels * kEnds)));
  parts.push_back(Utf8Of(0x1161 + syllable / kEnds % kVowels));
  if (end != 0) parts.push_back(Utf8Of(0x11A7 + end));
}

bool IsMark(const std::string& character) {
  return std::any_of(std::begin(kMarkedLetters), std::end(kMarkedLetters),
                     [&](const MarkedLetters& one) { return one.mark == character; });
}

// A label without characters that have parts, and with the marks of each letter in one order.
std::string Decomposed(const std::string& label, const Decompositions& all) {
  std::vector<std::string> parts;
  for (const std::string& character : CharactersOf(label)) Decompose(character, all, parts);
  for (auto first = parts.begin(); first != parts.end();) {
    first = std::find_if(first, parts.end(), IsMark);
    const auto last = std::find_if_not(first, parts.end(), IsMark);
    std::sort(first, last);
    first = last;
  }
  return absl::StrJoin(parts, "");
}

// For each character of the labels the first one that differs from it only by case, as RE2 knows it of all scripts.
std::map<std::string, std::string> CaseFoldsOf(absl::Span<const std::string> labels) {
  std::map<std::string, std::string> folds;
  for (const std::string& label : labels) {
    for (const std::string& character : CharactersOf(label)) folds[character] = character;
  }
  std::string all;
  for (const auto& [character, first] : folds) all += character;
  for (auto& [character, first] : folds) {
    if (IsUtf8(character)) RE2::PartialMatch(all, absl::StrCat("(?i)(", RE2::QuoteMeta(character), ")"), &first);
  }
  return folds;
}

// What a decomposed label is without space around it, with single spaces, in one case, and as the shortest form of a
// number.
std::string Plain(const std::string& label, const std::map<std::string, std::string>& folds) {
  std::string plain;
  for (const std::string& character : CharactersOf(label)) plain += folds.at(character);
  plain = absl::StrReplaceAll(plain, {{"\xc2\xa0", " "}});  // no-break spaces
  absl::RemoveExtraAsciiWhitespace(&plain);
  double number = 0;
  constexpr double kExact = 0x1p53;  // larger numbers that differ may be equal as double
  return absl::SimpleAtod(plain, &number) && std::abs(number) < kExact ? NumberText(number) : plain;
}

}  // namespace

absl::Status CheckLabelsDiffer(absl::Span<const std::string> labels, ProblemType problem, const std::string& name) {
  if (labels.empty()) return absl::InvalidArgumentError(absl::StrCat(name, ": no label is left"));
  if (labels.size() < 2 && problem == ProblemType::kSingleLabel) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": all examples have the label ", QuotedLabels(labels),
                                                   "; a classifier needs at least 2 labels"));
  }
  std::map<std::string, std::vector<std::string>> groups;
  const Decompositions decompositions = AllDecompositions();
  std::vector<std::string> decomposed;
  for (const std::string& label : labels) decomposed.push_back(Decomposed(label, decompositions));
  const std::map<std::string, std::string> folds = CaseFoldsOf(decomposed);
  for (size_t i = 0; i < labels.size(); ++i) groups[Plain(decomposed[i], folds)].push_back(labels[i]);
  std::erase_if(groups, [](const auto& group) { return group.second.size() < 2; });
  if (groups.empty()) return absl::OkStatus();
  constexpr int64_t kMostGroups = 10;
  std::vector<std::string> shown;
  for (const auto& [plain, alike] : groups) {
    if (std::ssize(shown) < kMostGroups) shown.push_back(QuotedLabels(alike));
  }
  if (std::ssize(groups) > kMostGroups) shown.push_back(absl::StrCat(groups.size() - kMostGroups, " more groups"));
  return absl::InvalidArgumentError(absl::StrCat(
      name, ": labels differ only by space, case, Unicode normal form or the form of a number: ",
      absl::StrJoin(shown, "; "), "; write them in one form, or rename those that mean different classes"));
}

}  // namespace longshort::models
