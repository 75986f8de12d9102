/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rust's parameters as MCA's: registered under their types, with their earlier names, and where their values
 * come from. MCA's own conversions are lenient (12abc is an int), so Rust reads the text that a user gave.
 */
#include "compat.h"

#include <stdio.h>
#include <unistd.h>

/* An enumeration of MCA's whose values are words of a parameter. */
struct words {
    mca_base_var_enum_t super;
    const struct cr_param *param;
};

/* MCA drops a component whose value it does not find: none is refused here, since Rust says what is wrong. */
static int value_from_string(mca_base_var_enum_t *self, const char *text, int *value)
{
    const struct cr_param *param = ((struct words *) self)->param;
    *value = (int) strtol(text, NULL, 10);
    for (size_t i = 0; i < param->word_count; ++i) {
        if (0 == strcmp(text, param->words[i].word)) {
            *value = param->words[i].number;
        }
    }
    return OPAL_SUCCESS;
}

static int string_from_value(mca_base_var_enum_t *self, const int value, char **text)
{
    const struct cr_param *param = ((struct words *) self)->param;
    if (NULL == text) {
        return OPAL_SUCCESS;
    }
    for (size_t i = 0; i < param->word_count; ++i) {
        if (value == param->words[i].number) {
            *text = strdup(param->words[i].word);
            return NULL == *text ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
        }
    }
    return asprintf(text, "%d", value) < 0 ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

/* The enumeration of a parameter's words; NULL where it has none, or memory is out. Kept for ever: MCA does
 * not count references to those that are static. */
static mca_base_var_enum_t *words_of(const struct cr_param *param)
{
    if (0 == param->word_count || NULL != *param->enumeration) {
        return *param->enumeration;
    }
    struct words *new = calloc(1, sizeof(*new));
    mca_base_var_enum_value_t *values = calloc(param->word_count + 1, sizeof(*values));
    if (NULL == new || NULL == values) {
        free(new);
        free(values);
        return NULL;
    }
    OBJ_CONSTRUCT(&new->super, mca_base_var_enum_t);
    for (size_t i = 0; i < param->word_count; ++i) {
        values[i].value = param->words[i].number;
        values[i].string = param->words[i].word;
    }
    new->param = param;
    new->super.enum_is_static = true;
    new->super.enum_name = (char *) param->name;
    new->super.enum_values = values;
    new->super.enum_value_count = (int) param->word_count;
    new->super.value_from_string = value_from_string;
    new->super.string_from_value = string_from_value;
    *param->enumeration = &new->super;
    return *param->enumeration;
}

static mca_base_var_type_t prepare(const struct cr_param *param)
{
    switch (param->kind) {
    case CR_PARAM_BOOL:
        *(bool *) param->storage = 0 != param->default_number;
        return MCA_BASE_VAR_TYPE_BOOL;
    case CR_PARAM_INT:
        *(int *) param->storage = (int) param->default_number;
        return MCA_BASE_VAR_TYPE_INT;
    case CR_PARAM_SIZE:
        *(size_t *) param->storage = (size_t) param->default_number;
        return MCA_BASE_VAR_TYPE_SIZE_T;
    default:
        /* MCA copies the text and from here on owns what is stored, until the component is closed. */
        *(char **) param->storage = (char *) param->default_text;
        return MCA_BASE_VAR_TYPE_STRING;
    }
}

int cr_param_register(const struct cr_param *param)
{
    const mca_base_component_t *component = &mca_coll_rust_component.collm_version;
    const mca_base_var_type_t type = prepare(param);
    /* What it returns is an error where it finds a value wrong, though the variable is there: Rust finds that
     * too. */
    (void) mca_base_component_var_register(
        component, param->name, param->help, type, words_of(param), 0, param->unset ? MCA_BASE_VAR_FLAG_DEF_UNSET : 0,
        (mca_base_var_info_lvl_t) (OPAL_INFO_LVL_1 + param->level - 1), MCA_BASE_VAR_SCOPE_READONLY, param->storage);
    const int index = mca_base_var_find(component->mca_project_name, component->mca_type_name,
                                        component->mca_component_name, param->name);
    if (index < 0) {
        return index;
    }
    *param->index = index;
    for (const char *const *was = param->was; NULL != *was; ++was) {
        (void) mca_base_var_register_synonym(index, component->mca_project_name, component->mca_type_name,
                                             component->mca_component_name, *was, MCA_BASE_VAR_SYN_FLAG_DEPRECATED);
    }
    return OMPI_SUCCESS;
}

/* What the environment says under a name, where MCA looks: with the project's name before it, or without. */
static const char *from_environment(const char *name)
{
    static const char *const PREFIXES[] = {OPAL_MCA_PREFIX "ompi_coll_rust_", OPAL_MCA_PREFIX "coll_rust_"};
    for (size_t i = 0; i < sizeof(PREFIXES) / sizeof(*PREFIXES); ++i) {
        char full[256];
        const int length = snprintf(full, sizeof(full), "%s%s", PREFIXES[i], name);
        const char *text = length > 0 && (size_t) length < sizeof(full) ? getenv(full) : NULL;
        if (NULL != text) {
            return text;
        }
    }
    return NULL;
}

void cr_param_given(const struct cr_param *param, struct cr_given *given)
{
    const mca_base_var_t *variable = NULL;
    memset(given, 0, sizeof(*given));
    if (OPAL_SUCCESS != mca_base_var_get(*param->index, &variable)
        || MCA_BASE_VAR_SOURCE_DEFAULT == variable->mbv_source) {
        return;
    }
    const mca_base_var_file_value_t *line = variable->mbv_file_value;
    if ((MCA_BASE_VAR_SOURCE_FILE == variable->mbv_source || MCA_BASE_VAR_SOURCE_OVERRIDE == variable->mbv_source)
        && NULL != line) {
        given->text = NULL == line->mbvfv_value ? "" : line->mbvfv_value;
        given->file = line->mbvfv_file;
        given->line = line->mbvfv_lineno;
        return;
    }
    given->text = from_environment(param->name);
    /* The name that was registered last wins. */
    for (const char *const *was = param->was; NULL != *was; ++was) {
        const char *text = from_environment(*was);
        given->text = NULL == text ? given->text : text;
    }
}

/* The settings in a file, by MCA's own parser. */
static void settings_in(const char *file, cr_setting_fn each, void *to)
{
    mca_base_var_file_value_t *line;
    opal_list_t lines;
    OBJ_CONSTRUCT(&lines, opal_list_t);
    if (0 == access(file, R_OK) && OPAL_SUCCESS == mca_base_parse_paramfile(file, &lines)) {
        OPAL_LIST_FOREACH(line, &lines, mca_base_var_file_value_t) {
            each(to, line->mbvfv_var, file, line->mbvfv_lineno);
        }
    }
    OPAL_LIST_DESTRUCT(&lines);
}

void cr_settings_in_files(cr_setting_fn each, void *to)
{
    /* --tune of 4.1; the user's file and the install's; the one that beats all. */
    static const char *const LISTS[] = {"envar_file_prefix", "param_files", "override_param_file"};
    for (size_t i = 0; i < sizeof(LISTS) / sizeof(*LISTS); ++i) {
        char *const *list = NULL;
        const int index = mca_base_var_find("opal", "mca", "base", LISTS[i]);
        if (index < 0 || OPAL_SUCCESS != mca_base_var_get_value(index, &list, NULL, NULL) || NULL == list
            || NULL == *list) {
            continue;
        }
        char *copy = strdup(*list), *save = NULL;
        for (char *file = NULL == copy ? NULL : strtok_r(copy, ",", &save); NULL != file;
             file = strtok_r(NULL, ",", &save)) {
            settings_in(file, each, to);
        }
        free(copy);
    }
}
