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
#include "re2/re2.h"

namespace longshort::models {
namespace {

using Decompositions = std::map<std::string, std::pair<std::string, std::string>, std::less<>>;

// A mark, and pairs: a character, and the one character that it and the mark can also be written as. Without a mark,
// two characters of which Unicode keeps the second for compatibility. The table has each canonical decomposition of
// Unicode 14 except those of Korean syllables and Chinese compatibility ideographs.
struct MarkedCharacters {
  std::string_view mark, pairs;
};

// clang-format off
constexpr MarkedCharacters kMarkedCharacters[] = {
    {"", "\u0300\u0340\u0301\u0341\u0313\u0343ʹʹ;;··άάέέήήίίόόύύώώΆΆιιΈΈΉΉΐΐΊΊΰΰΎΎ΅΅``ΌΌΏΏ´´\u2002\u2000\u2003\u2001"
     "ΩΩKKÅÅ〈〈〉〉"},
    {"\u0300", "AÀEÈIÌOÒUÙaàeèiìoòuùÜǛüǜNǸnǹЕЀИЍеѐиѝĒḔēḕŌṐōṑWẀwẁÂẦâầĂẰăằÊỀêềÔỒôồƠỜơờƯỪưừYỲyỳἀἂἁἃἈἊἉἋἐἒἑἓἘἚἙἛἠἢἡἣἨἪἩἫ"
     "ἰἲἱἳἸἺἹἻὀὂὁὃὈὊὉὋὐὒὑὓὙὛὠὢὡὣὨὪὩὫαὰεὲηὴιὶοὸυὺωὼΑᾺΕῈΗῊ᾿῍ϊῒΙῚ῾῝ϋῢΥῪ¨῭ΟῸΩῺ"},
    {"\u0301", "AÁEÉIÍOÓUÚYÝaáeéiíoóuúyýCĆcćLĹlĺNŃnńRŔrŕSŚsśZŹzźÜǗüǘGǴgǵÅǺåǻÆǼæǽØǾøǿ\u0308\u0344¨΅ΑΆΕΈΗΉΙΊΟΌΥΎΩΏϊΐαά"
     "εέηήιίϋΰοόυύωώϒϓГЃКЌгѓкќÇḈçḉĒḖēḗÏḮïḯKḰkḱMḾmḿÕṌõṍŌṒōṓPṔpṕŨṸũṹWẂwẃÂẤâấĂẮăắÊẾêếÔỐôốƠỚơớƯỨưứἀἄἁἅἈἌἉἍἐἔἑἕἘἜἙἝἠἤἡἥἨἬ"
     "ἩἭἰἴἱἵἸἼἹἽὀὄὁὅὈὌὉὍὐὔὑὕὙὝὠὤὡὥὨὬὩὭ᾿῎῾῞"},
    {"\u0302", "AÂEÊIÎOÔUÛaâeêiîoôuûCĈcĉGĜgĝHĤhĥJĴjĵSŜsŝWŴwŵYŶyŷZẐzẑẠẬạậẸỆẹệỌỘọộ"},
    {"\u0303", "AÃNÑOÕaãnñoõIĨiĩUŨuũVṼvṽÂẪâẫĂẴăẵEẼeẽÊỄêễÔỖôỗƠỠơỡƯỮưữYỸyỹ"},
    {"\u0304", "AĀaāEĒeēIĪiīOŌoōUŪuūÜǕüǖÄǞäǟȦǠȧǡÆǢæǣǪǬǫǭÖȪöȫÕȬõȭȮȰȯȱYȲyȳИӢиӣУӮуӯGḠgḡḶḸḷḹṚṜṛṝαᾱΑᾹιῑΙῙυῡΥῩ"},
    {"\u0306", "AĂaăEĔeĕGĞgğIĬiĭOŎoŏUŬuŭУЎИЙийуўЖӁжӂАӐаӑЕӖеӗȨḜȩḝẠẶạặαᾰΑᾸιῐΙῘυῠΥῨ"},
    {"\u0307", "CĊcċEĖeėGĠgġIİZŻzżAȦaȧOȮoȯBḂbḃDḊdḋFḞfḟHḢhḣMṀmṁNṄnṅPṖpṗRṘrṙSṠsṡŚṤśṥŠṦšṧṢṨṣṩTṪtṫWẆwẇXẊxẋYẎyẏſẛ"},
    {"\u0308", "AÄEËIÏOÖUÜaäeëiïoöuüyÿYŸΙΪΥΫιϊυϋϒϔЕЁІЇеёіїАӒаӓӘӚәӛЖӜжӝЗӞзӟИӤиӥОӦоӧӨӪөӫЭӬэӭУӰуӱЧӴчӵЫӸыӹHḦhḧÕṎõṏŪṺūṻWẄ"
     "wẅXẌxẍtẗ"},
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
    {"\u0324", "UṲuṳ"},
    {"\u0325", "AḀaḁ"},
    {"\u0326", "SȘsșTȚtț"},
    {"\u0327", "CÇcçGĢgģKĶkķLĻlļNŅnņRŖrŗSŞsşTŢtţEȨeȩDḐdḑHḨhḩ"},
    {"\u0328", "AĄaąEĘeęIĮiįUŲuųOǪoǫ"},
    {"\u032d", "DḒdḓEḘeḙLḼlḽNṊnṋTṰtṱUṶuṷ"},
    {"\u032e", "HḪhḫ"},
    {"\u0330", "EḚeḛIḬiḭUṴuṵ"},
    {"\u0331", "BḆbḇDḎdḏKḴkḵLḺlḻNṈnṉRṞrṟTṮtṯZẔzẕhẖ"},
    {"\u0338", "←↚→↛↔↮⇐⇍⇔⇎⇒⇏∃∄∈∉∋∌∣∤∥∦∼≁≃≄≅≇≈≉=≠≡≢≍≭<≮>≯≤≰≥≱≲≴≳≵≶≸≷≹≺⊀≻⊁⊂⊄⊃⊅⊆⊈⊇⊉⊢⊬⊨⊭⊩⊮⊫⊯≼⋠≽⋡⊑⋢⊒⋣⊲⋪⊳⋫⊴⋬⊵⋭⫝⫝̸"},
    {"\u0342", "ἀἆἁἇἈἎἉἏἠἦἡἧἨἮἩἯἰἶἱἷἸἾἹἿὐὖὑὗὙὟὠὦὡὧὨὮὩὯαᾶ¨῁ηῆ᾿῏ιῖϊῗ῾῟υῦϋῧωῶ"},
    {"\u0345", "ἀᾀἁᾁἂᾂἃᾃἄᾄἅᾅἆᾆἇᾇἈᾈἉᾉἊᾊἋᾋἌᾌἍᾍἎᾎἏᾏἠᾐἡᾑἢᾒἣᾓἤᾔἥᾕἦᾖἧᾗἨᾘἩᾙἪᾚἫᾛἬᾜἭᾝἮᾞἯᾟὠᾠὡᾡὢᾢὣᾣὤᾤὥᾥὦᾦὧᾧὨᾨὩᾩὪᾪὫᾫὬᾬὭᾭὮᾮὯᾯὰᾲαᾳ"
     "άᾴᾶᾷΑᾼὴῂηῃήῄῆῇΗῌὼῲωῳώῴῶῷΩῼ"},
    {"\u05b4", "\u05d9\ufb1d"},
    {"\u05b7", "\u05f2\ufb1f\u05d0\ufb2e"},
    {"\u05b8", "\u05d0\ufb2f"},
    {"\u05b9", "\u05d5\ufb4b"},
    {"\u05bc", "\u05d0\ufb30\u05d1\ufb31\u05d2\ufb32\u05d3\ufb33\u05d4\ufb34\u05d5\ufb35\u05d6\ufb36\u05d8\ufb38"
     "\u05d9\ufb39\u05da\ufb3a\u05db\ufb3b\u05dc\ufb3c\u05de\ufb3e\u05e0\ufb40\u05e1\ufb41\u05e3\ufb43\u05e4\ufb44"
     "\u05e6\ufb46\u05e7\ufb47\u05e8\ufb48\u05e9\ufb49\u05ea\ufb4a"},
    {"\u05bf", "\u05d1\ufb4c\u05db\ufb4d\u05e4\ufb4e"},
    {"\u05c1", "\u05e9\ufb2a\ufb49\ufb2c"},
    {"\u05c2", "\u05e9\ufb2b\ufb49\ufb2d"},
    {"\u0653", "\u0627\u0622"},
    {"\u0654", "\u0627\u0623\u0648\u0624\u064a\u0626\u06d5\u06c0\u06c1\u06c2\u06d2\u06d3"},
    {"\u0655", "\u0627\u0625"},
    {"\u093c", "नऩरऱळऴकक़खख़गग़जज़डड़ढढ़फफ़यय़"},
    {"\u09bc", "ডড়ঢঢ়যয়"},
    {"\u09be", "\u09c7\u09cb"},
    {"\u09d7", "\u09c7\u09cc"},
    {"\u0a3c", "ਲਲ਼ਸਸ਼ਖਖ਼ਗਗ਼ਜਜ਼ਫਫ਼"},
    {"\u0b3c", "ଡଡ଼ଢଢ଼"},
    {"\u0b3e", "\u0b47\u0b4b"},
    {"\u0b56", "\u0b47\u0b48"},
    {"\u0b57", "\u0b47\u0b4c"},
    {"\u0bbe", "\u0bc6\u0bca\u0bc7\u0bcb"},
    {"\u0bd7", "ஒஔ\u0bc6\u0bcc"},
    {"\u0c56", "\u0c46\u0c48"},
    {"\u0cc2", "\u0cc6\u0cca"},
    {"\u0cd5", "\u0cbf\u0cc0\u0cc6\u0cc7\u0cca\u0ccb"},
    {"\u0cd6", "\u0cc6\u0cc8"},
    {"\u0d3e", "\u0d46\u0d4a\u0d47\u0d4b"},
    {"\u0d57", "\u0d46\u0d4c"},
    {"\u0dca", "\u0dd9\u0dda\u0ddc\u0ddd"},
    {"\u0dcf", "\u0dd9\u0ddc"},
    {"\u0ddf", "\u0dd9\u0dde"},
    {"\u0f72", "\u0f71\u0f73"},
    {"\u0f74", "\u0f71\u0f75"},
    {"\u0f80", "\u0fb2\u0f76\u0fb3\u0f78\u0f71\u0f81"},
    {"\u0fb5", "ཀཀྵ\u0f90\u0fb9"},
    {"\u0fb7", "གགྷཌཌྷདདྷབབྷཛཛྷ\u0f92\u0f93\u0f9c\u0f9d\u0fa1\u0fa2\u0fa6\u0fa7\u0fab\u0fac"},
    {"\u102e", "ဥဦ"},
    {"\u1b35", "ᬅᬆᬇᬈᬉᬊᬋᬌᬍᬎᬑᬒ\u1b3a\u1b3b\u1b3c\u1b3d\u1b3e\u1b40\u1b3f\u1b41\u1b42\u1b43"},
    {"\u3099", "かがきぎくぐけげこごさざしじすずせぜそぞただちぢつづてでとどはばひびふぶへべほぼうゔゝゞカガキギクグ"
     "ケゲコゴサザシジスズセゼソゾタダチヂツヅテデトドハバヒビフブヘベホボウヴワヷヰヸヱヹヲヺヽヾ"},
    {"\u309a", "はぱひぴふぷへぺほぽハパヒピフプヘペホポ"},
    {"\U000110ba", "𑂙𑂚𑂛𑂜𑂥𑂫"},
    {"\U00011127", "\U00011131\U0001112e\U00011132\U0001112f"},
    {"\U0001133e", "\U00011347\U0001134b"},
    {"\U00011357", "\U00011347\U0001134c"},
    {"\U000114b0", "\U000114b9\U000114bc"},
    {"\U000114ba", "\U000114b9\U000114bb"},
    {"\U000114bd", "\U000114b9\U000114be"},
    {"\U000115af", "\U000115b8\U000115ba\U000115b9\U000115bb"},
    {"\U00011930", "\U00011935\U00011938"},
    {"\U0001d165", "𝅗𝅗𝅥𝅘𝅘𝅥𝆹𝆹𝅥𝆺𝆺𝅥"},
    {"\U0001d16e", "𝅘𝅥𝅘𝅥𝅮𝆹𝅥𝆹𝅥𝅮𝆺𝅥𝆺𝅥𝅮"},
    {"\U0001d16f", "𝅘𝅥𝅘𝅥𝅯𝆹𝅥𝆹𝅥𝅯𝆺𝅥𝆺𝅥𝅯"},
    {"\U0001d170", "𝅘𝅥𝅘𝅥𝅰"},
    {"\U0001d171", "𝅘𝅥𝅘𝅥𝅱"},
    {"\U0001d172", "𝅘𝅥𝅘𝅥𝅲"},
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

// The parts of each character in kMarkedCharacters, the mark last.
Decompositions AllDecompositions() {
  Decompositions all;
  for (const auto& [mark, pairs] : kMarkedCharacters) {
    const std::vector<std::string> characters = CharactersOf(pairs);
    for (size_t i = 0; i + 1 < characters.size(); i += 2) all[characters[i + 1]] = {characters[i], std::string(mark)};
  }
  return all;
}

// Adds the parts of a character: letters and marks, or the consonants and vowels of a Korean syllable.
void Decompose(const std::string& character, const Decompositions& all, std::vector<std::string>& parts) {
  if (const auto found = all.find(character); found != all.end()) {
    Decompose(found->second.first, all, parts);
    if (!found->second.second.empty()) parts.push_back(found->second.second);
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
  static const RE2 mark(R"(\pM)");
  return character.size() > 1 && RE2::FullMatch(character, mark);
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

// What a decomposed label is without invisible characters and space around it, with single spaces, in one case, and as
// the shortest form of a number.
std::string Plain(const std::string& label, const std::map<std::string, std::string>& folds) {
  std::string plain;
  for (const std::string& character : CharactersOf(label)) plain += folds.at(character);
  RE2::GlobalReplace(&plain, R"(\p{Zs})", " ");
  RE2::GlobalReplace(&plain, R"(\p{Cf})", "");  // byte order marks, zero-width spaces, marks of direction
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
      name, ": labels differ only by space, invisible characters, case, Unicode normal form or the form of a number: ",
      absl::StrJoin(shown, "; "), "; write them in one form, or rename those that mean different classes"));
}

}  // namespace longshort::models
